//! `no-resource-report`: an input that tells nothing of any kernel. Silence must not look like success.

use serde::Deserialize;

use super::{Context, text};
use crate::finding::{Finding, Hit, Level, Subject};
use crate::model::{InputFacts, Message, MessageKind, symbol};

/// The rule has no options.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Options {}

/// What an input shows.
#[derive(Clone, Copy, Default)]
struct Shown {
    /// Figures of a kernel, or a message that says why there are none or what is wrong with a kernel.
    something: bool,
    /// A line of figures that could not be read.
    unread: bool,
    /// A warning of a CUDA tool.
    warning: bool,
    /// nvcc says itself that there are no figures: the index of that message.
    not_shown: Option<usize>,
}

/// nvcc's own words for an input that this rule is about.
const NOT_SHOWN: &str = "Resource usage is not shown";

/// The inputs that this rule is about.
pub(super) struct Silent(Vec<Option<Shown>>);

impl Silent {
    pub(super) fn of(context: &Context<'_>) -> Silent {
        let inputs = context.report.inputs.iter().zip(shown(context));
        Silent(inputs.map(|(input, shown)| tells_nothing(input, shown).then_some(shown)).collect())
    }

    /// Whether a message says only what this rule says of its input.
    pub(super) fn repeats(&self, context: &Context<'_>, message: &Message) -> bool {
        self.0.get(message.place.input as usize).is_some_and(Option::is_some)
            && text::has(context.raw(message), NOT_SHOWN)
    }
}

fn tells_nothing(input: &InputFacts, shown: Shown) -> bool {
    // Records without a kernel: files that have none, or a filter that took them out.
    let only_kernels_lack = input.records > 0 && !shown.unread;
    // What is wrong with it is told as a failure; and no source holds figures.
    !shown.something && !only_kernels_lack && !input.torn && !input.is_source
}

pub(super) fn check(context: &Context<'_>, _: &Options, hits: &mut Vec<Hit>) {
    for (at, shown) in Silent::of(context).0.into_iter().enumerate() {
        let Some(shown) = shown else { continue };
        let compiled = context.report.inputs[at].compiles_cuda || shown.warning;
        let hit = Hit::input(at, 1).by_default_at_most(if compiled { Level::Deny } else { Level::Note });
        hits.push(hit.because_of_message(shown.not_shown));
    }
}

fn shown(context: &Context<'_>) -> Vec<Shown> {
    let mut shown = vec![Shown::default(); context.report.inputs.len()];
    for kernel in &context.report.kernels {
        let evidence = &kernel.evidence;
        let quotes = [evidence.frame, evidence.usage].into_iter().flatten().map(|quote| quote.place);
        for place in evidence.name.into_iter().chain(quotes) {
            shown[place.input as usize].something = true;
        }
    }
    for (at, message) in context.messages() {
        let shown = &mut shown[message.place.input as usize];
        match message.kind {
            MessageKind::Unread(_) => shown.unread = true,
            MessageKind::Warning | MessageKind::RegisterCap => {
                shown.warning = true;
                if shown.not_shown.is_none() && text::has(context.raw(message), NOT_SHOWN) {
                    shown.not_shown = Some(at);
                }
            }
            _ => shown.something = true,
        }
    }
    shown
}

pub(super) fn tell(context: &Context<'_>, _: &Options, hit: &Hit) -> Finding {
    let Subject::Input(at) = hit.subject else { return Finding::new("an input holds no figures") };
    let Some(input) = context.report.inputs.get(at as usize) else { return Finding::new("an input holds no figures") };
    let called = format!("`{}`", symbol::printable(&input.name));
    if context.report.modules.iter().any(|module| module.input == at) {
        return Finding::new(format!("{called} is PTX without a function"))
            .help("its code may be in the PTX of another source file")
            .fact("bytes", input.bytes);
    }
    let (message, help) = words(input, &called, hit.because.is_some(), hit.cap > Level::Note);
    Finding::new(message).help(help).fact("bytes", input.bytes)
}

fn words(input: &InputFacts, called: &str, not_shown: bool, compiled: bool) -> (String, &'static str) {
    if input.bytes == 0 && !input.is_captured {
        let help = "compilers write to stderr: put `2>&1` before the pipe or after the redirection, as in `nvcc -Xptxas -v … \
                    2>&1 | warplint`";
        return (format!("{called} is empty"), help);
    }
    if input.binary {
        let help = "give the text of the build, or `cuobjdump -res-usage FILE | warplint` for what is built; PowerShell's `>` \
                    writes UTF-16: convert such a log to UTF-8";
        return (format!("{called} is no text"), help);
    }
    if not_shown {
        let help = "with -rdc=true the figures come at the link: add `-Xnvlink -v` to the command that links";
        return (format!("{called} shows separate compilation and no figures of any kernel"), help);
    }
    if compiled {
        let help = "`-Xptxas -v` or `--resource-usage` among the compiler's flags prints them (CMake: \
                    `-DCMAKE_CUDA_FLAGS=-Xptxas=-v`), with -rdc=true `-Xnvlink -v` at the link as well. Where the flags are \
                    there, ptxas did not run to its end: a target that is up to date compiles nothing, so rebuild it, and \
                    look whether the build was stopped";
        return (format!("{called} shows a CUDA build and no figures of any kernel"), help);
    }
    if input.bytes == 0 {
        let help = "where the build was up to date, rebuild it; else `-Xptxas -v` among the compiler's flags prints the figures";
        return (format!("{called} printed nothing"), help);
    }
    let help = "warplint reads what `nvcc -Xptxas -v`, `nvlink -v` and `cuobjdump -res-usage` print: is this the right file, and \
                is stderr in it?";
    (format!("{called} holds no figures that ptxas, nvlink or cuobjdump printed"), help)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{helps, lint, told};

    const RULE: &str = "no-resource-report";

    #[test]
    fn a_cuda_build_without_figures_is_a_warning() {
        let log = "[ 25%] Building CUDA object CMakeFiles/x.dir/x.cu.o\n[100%] Built target x\n";
        assert_eq!(
            lint(log, &[]),
            ["warning[no-resource-report] `<stdin>` shows a CUDA build and no figures of any kernel"]
        );
        assert!(helps(RULE, log)[0].contains("-Xptxas -v"));
    }

    #[test]
    fn an_input_that_has_nothing_to_do_with_cuda_is_a_note() {
        let amd =
            "I0000 00:00:1770000123.500001 81234 amdgpu_backend.cc:447] ====== REGISTER SPILLING DETECTED ======\n";
        assert_eq!(
            lint(amd, &[]),
            ["note[no-resource-report] `<stdin>` holds no figures that ptxas, nvlink or cuobjdump printed"]
        );
        assert_eq!(lint("", &[]), ["note[no-resource-report] `<stdin>` is empty"]);
        assert!(helps(RULE, "")[0].contains("2>&1"));
        assert_eq!(lint("\u{7f}ELF\0\0\n", &[]), ["note[no-resource-report] `<stdin>` is no text"]);
    }

    #[test]
    fn separate_compilation_is_sent_to_the_linker() {
        let log = "nvcc warning : Resource usage is not shown as the final resource allocation is not done.\n";
        assert_eq!(told(RULE, log), ["warning: `<stdin>` shows separate compilation and no figures of any kernel"]);
        assert!(helps(RULE, log)[0].contains("-Xnvlink -v"));
        assert_eq!(lint(log, &[]).len(), 1, "the compiler's warning is not told besides");
    }

    #[test]
    fn lines_that_could_not_be_read_explain_nothing() {
        assert_eq!(told(RULE, "ptxas info    : Used lots of registers\n").len(), 1);
    }

    #[test]
    fn ptx_without_a_function_is_a_note() {
        let found = lint(".version 8.5\n.target sm_90\n.address_size 64\n.global .u32 x;\n", &[]);
        assert_eq!(found, ["note[no-resource-report] `<stdin>` is PTX without a function"]);
    }

    #[test]
    fn what_explains_itself_is_silent() {
        for log in [
            "ptxas info    : 0 bytes gmem\n",
            "ptxas fatal   : Unresolved extern function '_Z6ext_fnfi'\n",
            "ptxas warning : Registers are spilled to local memory in function 'fusion_31', 8 bytes spill stores, 16 bytes spill loads\n",
            "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.\n",
            "nvlink info    : Function properties for '_Z5k_rdcPfi':\nnvlink info    : used 46 registers, used 1 barriers, 88 stack, 256 bytes smem, 364 bytes cmem[0], 0 bytes lmem\n",
            " Function k:\n  REG:10 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:376\n",
        ] {
            assert!(told(RULE, log).is_empty(), "{log}");
        }
    }
}
