//! What may be said of a branch that was read off a source, without what a compiler makes of it: less, and less surely.

use super::branch::Branch;
use super::cost::Side;
use super::loss::{IDLE, idle, is_mostly_one};
use super::verdict::{Advice, Confidence, Evidence, Judgement, Verdict};

/// The smaller of two sides from which on a split is worth a word: merging, predication and folding cannot be seen.
const SIDE: f64 = 24.0;

/// The only side from which on that is so: what a compiler makes of it may be a part of what it looks like.
const ONLY: f64 = 64.0;

/// The share of lanes that have to idle meanwhile.
const IDLING: f64 = 0.25;

/// How loud a source may be about sides, where this share of the lanes idles while the heavier one runs. What can be seen of
/// them has to be enough, and most of them: a call of what is not seen may come to next to nothing.
fn loudest(taken: Side, other: Side, idle: f64) -> Advice {
    let (less, more) = if taken.weight <= other.weight { (taken, other) } else { (other, taken) };
    let is_seen = |side: Side, least: f64| side.known() >= least && side.guessed <= side.weight / 2.0;
    let advice = if is_mostly_one(less.weight) { Advice::Note } else { Advice::Warn };
    let is_enough = match advice {
        Advice::Warn => is_seen(less, SIDE) && more.known() >= SIDE,
        _ => is_seen(more, ONLY) && idle >= IDLING,
    };
    if is_enough { advice } else { Advice::Silent }
}

/// Whether sides are so heavy that a source tells that lanes lose enough, whatever share of them does.
#[must_use]
pub fn may_lose_enough(taken: Side, other: Side) -> bool {
    loudest(taken, other, 1.0) > Advice::Silent
}

/// The judgement on a branch of a source, of one that would hold for compiled code.
#[must_use]
pub fn of_source(evidence: &Evidence, judged: Judgement) -> Judgement {
    let judged = Judgement { confidence: judged.confidence.min(Confidence::Medium), ..judged };
    let silent = |reason| Judgement { advice: Advice::Silent, reason, ..judged };
    if evidence.data.by_data || evidence.index.by_data {
        return silent("what a source does not tell has a part in it");
    }
    match judged.verdict {
        // The language asks for all threads whatever the numbers are that a kernel is run with.
        Verdict::BarrierInDivergent => {
            let confidence = if evidence.shape_known { Confidence::Medium } else { Confidence::Low };
            Judgement { advice: Advice::Warn, confidence, ..judged }
        }
        // The numbers that were tried make most of the mean share of warps, as short loops do, which take no time.
        Verdict::DivergentIndex if evidence.spread.is_some_and(|one| evidence.is_loop && one.idle_of_all() < IDLE) => {
            // How many depends on numbers that are known at run time.
            let is_fixed = evidence.spread.is_some_and(|one| one.is_fixed);
            let advice = if is_fixed { Advice::Silent } else { judged.advice.min(Advice::Note) };
            Judgement { advice, reason: "lanes leave the loop apart, and lose few of its turns", ..judged }
        }
        Verdict::DivergentIndex if evidence.is_loop || evidence.several => judged,
        Verdict::DivergentIndex => {
            let loudest = evidence
                .sides
                .map_or(Advice::Silent, |(taken, other)| loudest(taken, other, idle(&evidence.index, taken, other)));
            match loudest {
                Advice::Warn => judged,
                // What hangs on more than a source hides as well is worth no word.
                Advice::Note if judged.advice == Advice::Warn => Judgement { advice: Advice::Note, ..judged },
                _ => silent("lanes part, and a source does not tell that they lose enough"),
            }
        }
        _ => silent(judged.reason),
    }
}

/// Takes back what is said of one side where it hangs on the block's shape: a source tells too little of it for that.
pub fn settle_shapes(branch: &mut Branch) {
    let is_one_sided =
        branch.sides.is_some_and(|(taken, other)| is_mostly_one(taken.weight.min(other.weight)) && !branch.is_loop);
    let Some(judgement) = branch.judgement.as_mut().filter(|_| is_one_sided && branch.ways == 2) else { return };
    if judgement.verdict == Verdict::DivergentIndex && judgement.confidence == Confidence::Low {
        judgement.advice = Advice::Silent;
        judgement.reason = "lanes part in some shapes of the block, and a source does not tell that they lose enough";
    }
}

#[cfg(test)]
mod tests {
    use super::super::Shape;
    use super::super::module::{Shapes, Told, look};
    use super::super::split::Split;
    use super::super::task::Which;
    use super::super::value::{ALL, Extent, Value};
    use super::super::verdict::{Missed, judge};
    use super::super::warp::{By, of_module};
    use super::*;
    use crate::model::{Bounds, Names};
    use crate::parse::cuda::lower;
    use crate::parse::ptx::Locations;

    fn evidence(weight: f64) -> Evidence {
        let extent = Extent { threads: 256, environments: ALL };
        let odd = Value::of_threads(extent, |thread| (thread % 2) as u64);
        let index = Split::count(&odd, &Value::constant(1), extent, false);
        let side = Side { weight, ..Side::default() };
        Evidence {
            index,
            data: index,
            body: 16.0,
            sides: Some((side, side)),
            shape_known: true,
            is_source: true,
            ..Evidence::default()
        }
    }

    fn told(evidence: &Evidence) -> (Verdict, Confidence, Advice) {
        let judgement = judge(evidence);
        (judgement.verdict, judgement.confidence, judgement.advice)
    }

    #[test]
    fn a_source_is_less_sure_and_asks_for_more_on_both_sides() {
        assert_eq!(told(&evidence(24.0)), (Verdict::DivergentIndex, Confidence::Medium, Advice::Warn));
        assert_eq!(told(&evidence(23.0)).2, Advice::Silent);
    }

    #[test]
    fn of_one_side_a_source_asks_for_more_and_says_less() {
        let of = |weight: f64, guessed: f64| {
            let one = Side { weight, guessed, ..Side::default() };
            Evidence { sides: Some((one, Side::default())), ..evidence(24.0) }
        };
        assert_eq!(told(&of(64.0, 0.0)), (Verdict::DivergentIndex, Confidence::Medium, Advice::Note));
        assert_eq!(told(&of(63.0, 0.0)).2, Advice::Silent);
        let few_idle = |lanes: usize| {
            let extent = Extent { threads: 256, environments: ALL };
            let some = Value::of_threads(extent, |thread| u64::from(thread % 32 >= lanes));
            let index = Split::count(&some, &Value::constant(1), extent, false);
            told(&Evidence { index, data: index, ..of(640.0, 0.0) }).2
        };
        assert_eq!((few_idle(7), few_idle(8)), (Advice::Silent, Advice::Note));
        // Blocks of which nothing tells the shape.
        assert_eq!(told(&Evidence { shape_known: false, ..of(64.0, 0.0) }).2, Advice::Silent);
    }

    #[test]
    fn what_calls_are_taken_to_cost_makes_no_finding() {
        let of = |weight: f64, guessed: f64| {
            let side = Side { weight, guessed, ..Side::default() };
            told(&Evidence { sides: Some((side, side)), ..evidence(24.0) }).2
        };
        assert_eq!((of(44.0, 20.0), of(43.0, 20.0)), (Advice::Warn, Advice::Silent));
        assert_eq!((of(60.0, 30.0), of(60.0, 31.0)), (Advice::Warn, Advice::Silent));
    }

    #[test]
    fn what_is_not_known_silences_everything() {
        let data = Split { by_data: true, ..evidence(24.0).index };
        assert_eq!(told(&Evidence { data, ..evidence(24.0) }).2, Advice::Silent);
        let barrier = Evidence { barrier: Some(Missed::Exits), ..evidence(24.0) };
        assert_eq!(told(&barrier), (Verdict::BarrierInDivergent, Confidence::Medium, Advice::Warn));
        assert_eq!(told(&Evidence { data, ..barrier }).2, Advice::Silent);
    }

    /// The branches of a source with their lines, in blocks of 256 threads.
    fn branches(source: &str, which: Which) -> Vec<(u32, Branch)> {
        let text = source.as_bytes();
        let functions = lower::functions(text, &[]);
        let constants = |name: &[u8]| (name == b"TILE").then_some(16);
        let unit = lower::Unit { text, name: "k.cu", functions: &functions, constants: &constants };
        let Some(lowered) = lower::lower(&unit) else { return Vec::new() };
        let mut names = Names::default();
        let mut named = |at: usize| names.intern(&text[functions[at].name.clone()]);
        let module = lowered.into_module(0, &functions, &mut named, &|_| Bounds::default());
        let shapes = |_| {
            let shape = Shape { x: 256, y: 1, z: 1, is_entry: true };
            Some(Shapes { all: vec![shape], known: true, assumed: false, told: Told::Fully, part: [None; 3] })
        };
        let looked = look(&module, &names, &shapes, which);
        let line = |place: Option<Locations>| place.map_or(0, |place| place.outer.line);
        let all = looked.into_iter().flat_map(|one| one.branches.into_iter().zip(one.locations));
        all.map(|(branch, place)| (line(place), branch)).collect()
    }

    /// Verdict and advice of each branch that is worth a word, with its line.
    fn found(source: &str) -> Vec<(u32, Verdict, Advice)> {
        let all = branches(source, Which::ByIndex).into_iter().filter_map(|(line, branch)| {
            let judgement = branch.judgement.filter(|judgement| judgement.advice > Advice::Silent)?;
            Some((line, judgement.verdict, judgement.advice))
        });
        all.collect()
    }

    /// A kernel in which every second lane does one thing and the others another, behind a function that they may call.
    fn parting(helper: &str, one: &str, two: &str) -> String {
        format!(
            "{helper}\n__global__ void k(const float* g, float* o, int n, int w) {{ int t = threadIdx.x, i = blockIdx.x * 256 + t;\n\
             if (t % 2) {{ {one} }} else {{ {two} }} }}"
        )
    }

    /// What the first side of its branch weighs.
    fn weight(helper: &str, one: &str) -> f64 {
        let all = branches(&parting(helper, one, "for (int q = 0; q < n; q++) o[q + 3] += g[q] * 3.f;"), Which::All);
        let sides = all.iter().find(|(line, _)| *line == 3).and_then(|(_, branch)| branch.sides);
        sides.map_or(0.0, |(_, other)| other.weight)
    }

    #[test]
    fn a_helper_weighs_what_its_text_weighs_in_its_place() {
        for body in [
            "o[i] = max(i, 3);",
            "o[i] = float(i);",
            "o[i] = sqrtf(x);",
            "o[i] = make_float2(x, x).x;",
            "assert(i > 0); o[i] = x;",
            "float v(x); o[i] = v;",
            "for (int j = 0; j < 12; j++) o[i + j] = o[j] * x;",
            "o[i] = sinf(x) / o[i + 1];",
            "o[i] = o[i % 7] + i / 7;",
        ] {
            let helper = format!("__device__ void el(float* o, int i, float x) {{ {body} }}");
            let (called, inline) =
                (weight(&helper, "float x = g[i]; el(o, i, x);"), weight("", &format!("float x = g[i]; {body}")));
            assert!((called - inline).abs() <= 3.0, "{body}: {called} where it is called, {inline} in its place");
        }
    }

    #[test]
    fn a_function_of_the_library_weighs_what_a_compiler_makes_of_it() {
        // What nvcc's PTX of it weighs, which differs by an instruction or two with what is around it.
        let of = |code: &str| weight("", &format!("float x = g[i]; o[i] = {code};"));
        for (code, expected) in [
            ("fmaxf(x, 1.f)", 1.0),
            ("__sinf(x)", 2.0),
            ("sqrtf(x)", 22.0),
            ("sinf(x)", 113.0),
            ("x / x", 26.0),
            ("x / 4.f", 1.0),
            ("x / 3.f", 26.0),
            ("i / 7", 5.0),
            ("(unsigned)i % 7u", 9.0),
            ("i % 8", 5.0),
            ("g[(unsigned)i % 7u]", 10.0),
            ("g[i % 7]", 10.0),
            ("i / n", 26.0),
        ] {
            let weight = of(code) - of("x");
            assert!((weight - expected).abs() <= 2.0, "{code}: {weight}");
        }
    }

    #[test]
    fn calls_that_are_cheap_or_unseen_make_no_side_heavy() {
        // Of opencv_contrib's NCVBroxOpticalFlow and magma's hemm_template_device; nvcc's PTX has no branch.
        let clamped = "__device__ void el(const float* g, float* o, int is, int i, int w) { i = max(i, -i - 1); \
                       i = min(i, w - i + w - 1); o[is] = g[i]; }";
        let rooted = "__device__ void el(float* s, int i, float v) { s[i] = fmaxf(v, 0.0f) + sqrtf(v); }";
        let ratio = "__device__ float fn(float a, float b) { float c = a / b; return c * c + sqrtf(a); }";
        let silent = [
            (clamped, "el(g, o, t + 2, i, w);", "el(g, o, t + 3, i - 7, w);"),
            ("", "o[t] = conj(g[i]) + 1.f;", "o[t] = real(g[i + 1] * g[i]);"),
            ("__device__ float f(float x) { return other(x); }", "o[t] = f(g[i]);", "o[t + 1] = f(g[i] * g[i + 1]);"),
            ("", "o[t] = floorf(g[i] / g[t]) * g[t];", "o[t] = floorf(g[i] / g[t]) * g[t] + g[t];"),
            ("", "o[i] = g[i] % 7;", "o[i] = g[i + 1] % 9 + 5;"),
            (rooted, "el(o, i, g[i]);", "el(o, i + 7, g[i + 1]);"),
            ("", "o[i] = g[i] / g[i + 3] + sqrtf(g[t]);", "o[i + 7] = g[i * 2 + 1] / g[t] + sqrtf(g[t + 5]);"),
            (ratio, "x = fn(g[i], g[t]); x = fn(x, g[t + 1]);", "x = fn(g[i + 9], g[t - 1]); x = fn(x, g[t * 3]);"),
        ];
        for (helper, one, two) in silent {
            assert_eq!(found(&parting(helper, one, two)), [], "{one}");
        }
        for (one, two) in [
            ("o[i] = sinf(g[i]);", "o[i] = cosf(g[i + 1]) * 2.f;"),
            ("o[i] = g[i] / g[t];", "o[i] = 1.f + sqrtf(g[t]);"),
        ] {
            let found = found(&parting("", one, two));
            assert!(matches!(found[..], [(3, Verdict::DivergentIndex, Advice::Warn)]), "{one}: {found:?}");
        }
    }

    #[test]
    fn a_variable_holds_what_its_type_has_room_for() {
        let is_told = |before: &str, condition: &str| {
            let loops = ["o[q] += g[q] * 3.f;", "o[q + 3] -= g[q] + 7.f;"]
                .map(|one| format!("for (int q = 0; q < n; q++) {one}"));
            let helpers = "__device__ bool some(int x) { return x & 30; }\n\
                __device__ static inline unsigned char low(int x) { return x; } __device__ int half(float x) { return x / 2; }\n\
                template <typename T> __device__ T same(T x) { return x; }";
            let source = format!(
                "{helpers}\n__global__ void k(const float* g, float* o, int n, char f) {{ int t = threadIdx.x; {before}\n\
                 if ({condition}) {{ {} }} else {{ {} }} }}",
                loops[0], loops[1]
            );
            !found(&source).is_empty()
        };
        for (before, condition) in [
            // Whole numbers of 8 bits, and of 16.
            ("unsigned char c = t * 256;", "c"),
            ("uint8_t c = 250 + t % 2; c += 6;", "c / 2"),
            ("short s = (t % 2 + 1) << 16;", "s == 0"),
            ("char c = t % 2 + 64; c *= 4;", "c & 3"),
            ("", "(unsigned char)(t * 256)"),
            ("", "(t % 2 ? f : 0) > 127"),
            // A condition is 0 or 1.
            ("bool b = t & 30;", "b & 2"),
            ("bool b = t % 2; b += 5;", "b != 1"),
            ("bool b; b = t % 2 + 4;", "b / 2"),
            ("", "some(t % 2 * 4) & 4"),
            ("", "low(t * 256)"),
            ("", "static_cast<bool>(t % 2 + 1) == 0"),
            // Halves of a floating-point number are not those of a whole one.
            ("", "half(t) % 2"),
        ] {
            assert!(!is_told(before, condition), "{before} {condition}");
        }
        for (before, condition) in [
            ("unsigned char c = t;", "c & 1"),
            ("const short s = t % 2;", "s"),
            ("char c = t % 2 * 128;", "c < 0"),
            ("bool b = t & 1;", "b"),
            ("bool b = t % 2 + 1; b = t % 2;", "b"),
            ("", "some(t % 2 * 4)"),
            ("", "low(t) % 2"),
            ("", "same(t) % 2"),
            ("", "max((long long)t, (1ll << 40) * (t % 2)) >> 40"),
        ] {
            assert!(is_told(before, condition), "{before} {condition}");
        }
    }

    #[test]
    fn what_changes_under_another_name_is_not_followed() {
        for before in [
            "int m = 0; int& r = m; m = threadIdx.x % 2; r = 0;",
            "int m = 0; auto& r = m; m = threadIdx.x % 2; r = n;",
            "int m = 0; int &r(m), s = 2; m = threadIdx.x % 2; r = s;",
            "int m = 0; int& r{m}; m = threadIdx.x % 2; r = n;",
        ] {
            assert!(!parts(before, "m"), "{before}");
        }
        assert!(parts("int m = threadIdx.x % 2, l = 0; int& r = l; r = 3;", "m"));
    }

    #[test]
    fn a_name_of_a_block_hides_the_one_outside_whatever_stands_before_its_type() {
        let inner = |declaration: &str| {
            let side = "for (int j = 0; j < 9; j++) o[j] = o[j + 1] * 2.f;";
            !found(&format!(
                "__global__ void k(float* o, const int* p) {{ int m = threadIdx.x & 1;\n\
                 {{ {declaration} if (m == 1) {{ {side} }} else {{ {side} o[0] = 2.f; }} }} }}"
            ))
            .is_empty()
        };
        assert!(inner(""), "the one outside");
        for words in ["", "const", "enum", "class", "union", "struct ns::"] {
            assert!(!inner(&format!("{words} Side m = p[0];")), "{words}");
        }
    }

    #[test]
    fn a_heavy_side_alone_is_a_note() {
        let told = |one: &str| found(&parting("", one, "").replace(" else {  }", ""));
        let long = "for (int j = 0; j < 1000; j++) o[t] += g[j] * g[t];";
        assert_eq!(told(long), [(3, Verdict::DivergentIndex, Advice::Note)]);
        assert_eq!(told("o[t] = sinf(g[t]);"), [(3, Verdict::DivergentIndex, Advice::Note)]);
        assert_eq!(told("o[t] = g[t] * 2.f + 1.f;"), []);
        assert_eq!(told("for (int j = 0; j < 1000; j++) update(o, j);"), []);
    }

    /// The same for a kernel with `before` and a condition that decides between two loops.
    fn parts(before: &str, condition: &str) -> bool {
        let source = format!(
            "__global__ void k(float* o, const int* p, int n, float c) {{ {before}\nif ({condition}) {{\n\
             for (int j = 0; j < 9; j++) o[j] = o[j + 1] * 2.f; }} else {{ for (int j = 8; j > 0; j--) o[j] += c; }} }}"
        );
        let found = found(&source);
        assert!(found.len() <= 1, "{source}: {found:?}");
        found.first().is_some_and(|(line, verdict, _)| *line == 2 && *verdict == Verdict::DivergentIndex)
    }

    #[test]
    fn lanes_part_by_their_index() {
        for condition in [
            "threadIdx.x % 2 == 0",
            "threadIdx.x & 1",
            "(threadIdx.x & 31) < 16",
            "!(threadIdx.x % 3)",
            "threadIdx.x % warpSize < TILE",
            "(int)threadIdx.x % 4 == 1 || threadIdx.x % 4 == 2",
            "((threadIdx.x >> 4) & 1) != 0",
            "min(threadIdx.x & 31, 7u) == 7",
            "(threadIdx.x % 2 ? 1 : 0)",
            "threadIdx.x / 48 & 1",
            "__popc(threadIdx.x) & 1",
            "static_cast<unsigned>(threadIdx.x) % 2u",
        ] {
            assert!(parts("", condition), "{condition}");
        }
        for before in [
            "int t = threadIdx.x; const int m = t % 2;",
            "int t = blockIdx.x * blockDim.x + threadIdx.x; int m = t; m %= 2;",
            "unsigned m; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(m)); m &= 1;",
            "auto b = cg::this_thread_block(); auto w = cg::tiled_partition<32>(b); int m = w.thread_rank() % 2;",
            "auto g = cooperative_groups::this_grid(); auto m = g.thread_rank() & 1;",
            "int m = 0; if (threadIdx.x & 1) m = 1;",
            "int m = cub::LaneId() & 1;",
            "int m = 0; m += threadIdx.x; m++; m &= 1; m--;",
            "const dim3 t = threadIdx; int m = t.x & 1;",
            "bool m = threadIdx.x & 1;",
            "size_t i = threadIdx.x; size_t m = i % 2;",
        ] {
            assert!(parts(before, "m"), "{before}");
        }
    }

    #[test]
    fn lanes_that_go_one_way_are_silent() {
        for condition in [
            "threadIdx.x / 32 % 2",
            "(threadIdx.x >> 5) & 1",
            "threadIdx.x / warpSize & 1",
            "threadIdx.x & 32",
            "threadIdx.x < 128",
            "threadIdx.x < 100",
            "blockIdx.x & 1",
            "n > 5",
            "threadIdx.x == 0",
            "(threadIdx.x & 31) == 0",
            "!threadIdx.x",
            "cub::WarpId() == 1",
            "__shfl_sync(~0u, threadIdx.x / 32, 0) == 0",
            "__any_sync(~0u, p[threadIdx.x] > 0)",
            "__ballot_sync(~0u, threadIdx.x & 1) & 2",
            "cute::elect_one_sync()",
        ] {
            assert!(!parts("", condition), "{condition}");
        }
    }

    #[test]
    fn what_a_source_does_not_tell_is_silent() {
        for condition in [
            "p[threadIdx.x] > 0",
            "(threadIdx.x & 1) && p[threadIdx.x] > 0",
            "p[0] && (threadIdx.x & 1)",
            "threadIdx.x % N == 0",
            "f(threadIdx.x)",
            "threadIdx.x * c < 4.f",
            "threadIdx.x % 2 == s.flag",
            "__shfl_down_sync(~0u, threadIdx.x, 1) & 1",
        ] {
            assert!(!parts("", condition), "{condition}");
        }
        for before in [
            "int m = threadIdx.x & 1; g(m);",
            "int m = threadIdx.x & 1; int* q = &m; *q = 0;",
            "int m = threadIdx.x & 1; auto l = [&] { m = 0; }; l();",
            "int m = threadIdx.x & 1; int& r = m; r = 0;",
            "int m = threadIdx.x & 1; asm(\"mov.u32 %0, 1;\" : \"=r\"(m));",
            "int m = threadIdx.x & 1; if (p[0]) m = 0;",
            "\n#ifdef FAST\nconst int m = threadIdx.x & 1;\n#else\nconst int m = 0;\n#endif\n",
            "float m = threadIdx.x & 1;",
            "T m = threadIdx.x & 1;",
            "int m = 0; for (int k = 0; p[k]; k++) m ^= threadIdx.x;",
            "auto w = cg::coalesced_threads(); int m = w.thread_rank() & 1;",
        ] {
            assert!(!parts(before, "m"), "{before}");
        }
    }

    #[test]
    fn short_functions_of_the_file_are_read_in_place_of_their_calls() {
        let source = |helper: &str, condition: &str| {
            format!(
                "{helper}\n__global__ void k(float* o) {{ if ({condition}) {{ for (int j = 0; j < 9; j++) o[j] *= 2.f; }} else \
                 {{ for (int j = 8; j > 0; j--) o[j] = o[j - 1] + 3.f; }} }}"
            )
        };
        let parts = |helper: &str, condition: &str| !found(&source(helper, condition)).is_empty();
        let lane = "__device__ int lane_id() { return threadIdx.x % 32; }";
        assert!(parts(lane, "lane_id() < 16") && !parts(lane, "lane_id() == 0"));
        let assembly = "__device__ int lane() { int r; asm(\"mov.u32 %0, %laneid;\" : \"=r\"(r)); return r; }";
        assert!(parts(assembly, "lane() & 1"));
        let half = "__device__ int half(int i) { return i / 2; }";
        assert!(parts(half, "half(threadIdx.x) & 1") && !parts(half, "half(threadIdx.x) & 16"));
        assert!(!parts("", "lane_id() < 16"));
        assert!(!parts("__device__ int f(int i) { return f(i + 1); }", "f(threadIdx.x)"));
    }

    #[test]
    fn dead_and_uncertain_code_is_silent() {
        let sides =
            "{ for (int j = 0; j < 9; j++) o[j] *= 2.f; } else { for (int j = 8; j > 0; j--) o[j] = o[j - 1] + 3.f; }";
        let kernel = |condition: &str| format!("__global__ void k(float* o) {{\n{condition} {sides}\n}}");
        assert_eq!(found(&kernel("if (threadIdx.x & 1)")).len(), 1);
        for condition in
            ["if constexpr (threadIdx.x & 1)", "#if X\n}\n#endif\nif (threadIdx.x & 1)", "return; if (threadIdx.x & 1)"]
        {
            assert_eq!(found(&kernel(condition)), [], "{condition}");
        }
        let muted = format!("__global__ void k(float* o) {{\n#if X\nif (threadIdx.x & 1) {sides}\n#endif\n}}");
        assert_eq!(found(&muted), []);
    }

    #[test]
    fn loops_are_told_whose_lanes_leave_far_apart() {
        let kernel = |head: &str| format!("__global__ void k(float* o, int n) {{ {head} o[0] += 1.f; }}");
        let divergent =
            |head: &str| found(&kernel(head)).iter().any(|(_, verdict, _)| *verdict == Verdict::DivergentIndex);
        for head in [
            "for (int k = 0; k < (threadIdx.x & 31); k++)",
            "for (int k = threadIdx.x; k < 256; k++)",
            "for (int k = threadIdx.x; k < n; k++)",
            "int k = 0; while (k < (int)(threadIdx.x % 32)) { k++; } if (k < n)",
        ] {
            assert!(divergent(head), "{head}");
        }
        for head in [
            "for (int k = threadIdx.x; k < n; k += blockDim.x)",
            "for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < n; k += gridDim.x * blockDim.x)",
            "for (int k = 0; k < n; k++)",
            "for (int k = 0; k < threadIdx.x / 32; k++)",
            "for (int k = threadIdx.x; k < o[0]; k++)",
        ] {
            assert!(!divergent(head), "{head}");
        }
        // Long in most blocks, and then few of its turns are idle.
        let place = "for (int k = 0; k < blockIdx.x * blockDim.x + threadIdx.x; k++)";
        assert!(found(&kernel(place)).iter().all(|(_, _, advice)| *advice == Advice::Note));
    }

    #[test]
    fn what_data_decide_who_comes_to_is_told_less_surely() {
        let kernel = |before: &str, body: &str| {
            found(&format!(
                "__global__ void k(float* o, const int* p, int n) {{ __shared__ int best; int t = threadIdx.x; {before} {body} }}"
            ))
        };
        let turns = "for (int j = 0; j < t; j++) o[j] += 1.f;";
        let sides = "if (t & 1) { for (int j = 0; j < 9; j++) o[j] *= 2.f; } \
                     else { for (int j = 8; j > 0; j--) o[j] = o[j - 1] + 3.f; }";
        for before in ["if (t == best)", "if (p[t] > 3)", "if (p[t] > 3 && t == best)", "if (p[t] > 3) return;"] {
            assert_eq!(kernel(before, turns), [], "{before}");
            let noted = matches!(kernel(before, sides)[..], [(_, Verdict::DivergentIndex, Advice::Note)]);
            assert!(noted, "{before}");
        }
        for before in ["", "if (n > 3)", "if (blockIdx.x > 0)", "if (p[t] > 3) o[t] = 1.f;"] {
            assert!(matches!(kernel(before, turns)[..], [(_, Verdict::DivergentIndex, Advice::Warn)]), "{before}");
            assert!(matches!(kernel(before, sides)[..], [(_, Verdict::DivergentIndex, Advice::Warn)]), "{before}");
        }
    }

    #[test]
    fn a_loop_that_data_end_as_well_is_silent() {
        let told = |body: &str| {
            let kernel = format!(
                "__global__ void k(int* o, const int* p, int n) {{ int c = 0, i = threadIdx.x; {body} o[threadIdx.x] = i + c; }}"
            );
            found(&kernel).iter().any(|(_, verdict, _)| *verdict == Verdict::DivergentIndex)
        };
        for body in [
            "while (i >= 0) { if (p[i] != 3) break; i--; }",
            "while (i >= 0) { if (p[i] == 3) { c++; i--; } else { break; } }",
            "for (; i >= 0; i--) { if (p[i] == n) return; }",
            "for (; i >= 0; i--) { if (p[i] == 3) { if (n > i) break; } }",
            "for (; i >= 0; i--) { c += p[i]; if (c > 7) goto done; } done:",
        ] {
            assert!(!told(body), "{body}");
        }
        for body in [
            "while (i >= 0) { c += p[i]; i--; }",
            "while (i >= 0) { if (p[i] != 3) c++; i--; }",
            "while (i >= 0) { if (p[i] != 3) c++; if (i == n) break; i--; }",
        ] {
            assert!(told(body), "{body}");
        }
    }

    #[test]
    fn barriers_are_told_that_a_part_of_the_block_comes_to() {
        let misses = |body: &str| {
            let source = format!("__global__ void k(float* o, const int* p, int n) {{ int t = threadIdx.x; {body} }}");
            found(&source).iter().any(|(_, verdict, _)| *verdict == Verdict::BarrierInDivergent)
        };
        for body in [
            "if (t & 1) { o[t] = 1.f; __syncthreads(); o[t] = o[0]; }",
            "if (t < 128) __syncthreads();",
            "if (t < n) { __syncthreads(); }",
            "if (t >= n) return; o[t] = 1.f; __syncthreads(); o[t] = o[0];",
            "int i = 512 * blockIdx.x + 4 * t; if (p[0] > 4) return; if (i >= n) return; o[i] = 1.f; __syncthreads(); o[i] = o[0];",
            "int i = 512 * blockIdx.x + 4 * t; if (o[0] > 0.f) { int any = 0; for (int j = 0; j < 3; j++) any |= p[j] > 4; if (any) return; } if (i >= n) return; o[i] = 1.f; __syncthreads(); o[i] = o[0];",
            "for (int i = t; i < n; i += blockDim.x) { __syncthreads(); o[i] = 1.f; }",
            "for (int i = 0; i < n; i++) { if (t < 7) continue; __syncthreads(); }",
            "for (int i = 0; i < n; i++) { if (t == i) break; __syncthreads(); }",
            "if (t < 7) goto end; __syncthreads(); end: o[t] = 1.f;",
            "auto b = cg::this_thread_block(); if (t < 7) { b.sync(); o[t] = 1.f; }",
            "auto b = cg::this_thread_block(); if (t < 7) cg::sync(b);",
            "if (t < 7) { asm volatile(\"bar.sync 0;\" ::: \"memory\"); o[t] = 1.f; }",
            "if (t < 7) { if (__syncthreads_or(p[t])) o[t] = 1.f; }",
            "do { if (o[t] > 0.f) o[t] = 1.f; __syncthreads(); if (o[t] > 1.f) o[t] = 2.f; } while (++t < n);",
            "switch (t / 64) { case 0: __syncthreads(); break; default: o[t] = 1.f; }",
            "if (__any_sync(~0u, t < n)) __syncthreads(); o[t] = 1.f;",
            "if (__popc(__ballot_sync(~0u, t < n)) == 32) __syncthreads(); o[t] = 1.f;",
            "int i = 2 * 256 * blockIdx.x + t; if (i >= n || i + 256 >= n) return; o[t] = o[i] + o[i + 256]; __syncthreads(); o[i] = o[0];",
            "if (t <= 32 - n) __syncthreads(); o[t] = 1.f;",
            "if (t == 200 || t < gridDim.x) __syncthreads(); o[t] = 1.f;",
            "int w = t / 32; for (int i = 0; i < n % 4; i++) for (int j = 1; j < w; j += 6) __syncthreads(); o[t] = 1.f;",
            "int w = t / 32; for (int i = 1; i <= w; i += 6) for (int j = 0; j < n % 2; j++) __syncthreads(); o[t] = 1.f;",
        ] {
            assert!(misses(body), "{body}");
        }
        for body in [
            "if (blockIdx.x < 16) { __syncthreads(); o[t] = 1.f; }",
            "if (n > 3) { __syncthreads(); o[t] = 1.f; }",
            "if (n > 3) return; __syncthreads();",
            "if (p[0]) { __syncthreads(); o[t] = 1.f; }",
            "if (t < p[0]) { __syncthreads(); o[t] = 1.f; }",
            "int i = 512 * blockIdx.x; if (i + 512 > n) return; if (i + t >= n) return; __syncthreads(); o[t] = 1.f;",
            "for (int i = 0; i < n; i++) { if (t < i) o[t] = 1.f; __syncthreads(); }",
            "for (int s = blockDim.x / 2; s > 0; s >>= 1) { if (t < s) o[t] += o[t + s]; __syncthreads(); }",
            "bool is_in = t < n; if (is_in) o[t] = 1.f; __syncthreads(); if (is_in) o[t] = o[0];",
            "if (t < 128) { asm volatile(\"bar.sync 1, 128;\" ::: \"memory\"); o[t] = 1.f; }",
            "if (t < 128) { asm volatile(\"bar.sync %0;\" :: \"r\"(1)); o[t] = 1.f; }",
            "auto w = cg::tiled_partition<32>(cg::this_thread_block()); if (t < 7) { w.sync(); o[t] = 1.f; }",
            "if (t < 7) { __syncwarp(); o[t] = 1.f; }",
            "int last = __syncthreads_or(t == 3); if (last) { __syncthreads(); o[t] = 1.f; }",
            "auto th = mma.slice(threadIdx.x); auto K = size<2>(th.part(o)); if (K > 1) __syncthreads();",
            "if (t < 256) { __syncthreads(); o[t] = 1.f; }",
        ] {
            assert!(!misses(body), "{body}");
        }
    }

    #[test]
    fn a_block_dispatch_on_the_lane_is_told() {
        let kernel = |value: &str| {
            let case = |at: u32| format!("case {at}: for (int j = 0; j < 9; j++) o[j] += {at}.f; break;");
            let cases: String = (0..4).map(case).collect();
            found(&format!("__global__ void k(float* o) {{ switch ({value}) {{ {cases} default: o[0] = 1.f; }} }}"))
        };
        let told = kernel("threadIdx.x % 5");
        assert!(told.iter().any(|(_, verdict, _)| *verdict == Verdict::DivergentIndex), "{told:?}");
        assert_eq!(kernel("threadIdx.x / 32"), []);
    }

    /// The exchanges of a source that do not wait: how, how many, and on which line.
    fn exchanges(source: &str) -> Vec<(By, u32, u32)> {
        let text = source.as_bytes();
        let functions = lower::functions(text, &[]);
        let unit = lower::Unit { text, name: "k.cu", functions: &functions, constants: &|_| None };
        let Some(lowered) = lower::lower(&unit) else { return Vec::new() };
        let mut names = Names::default();
        let module = lowered.into_module(0, &functions, &mut |_| names.intern(b"k"), &|_| Bounds::default());
        let found = of_module(&module, &|_| true);
        let line = |place: Option<Locations>| place.map_or(0, |place| place.outer.line);
        found.into_iter().map(|(_, one)| (one.by, one.count, line(one.locations))).collect()
    }

    #[test]
    fn exchanges_of_before_sm_70_are_found_where_they_are_called() {
        let kernel = |body: &str| format!("__global__ void k(int* o) {{ int x = o[threadIdx.x];\n{body} }}");
        let of = |body: &str| exchanges(&kernel(body));
        assert_eq!(of("x += __shfl_down(x, 16);\nx += __shfl_xor(x, 1);"), [(By::Shuffle, 1, 2), (By::Shuffle, 1, 3)]);
        assert_eq!(of("if (__any(x > 0)) o[0] = __ballot(x);"), [(By::Vote, 1, 2), (By::Vote, 1, 2)]);
        assert_eq!(of("if (__any(x > 0) && __any(x < 9)) o[0] = 1;"), [(By::Vote, 2, 2)]);
        assert_eq!(of("x += __shfl_down_sync(~0u, x, 16); if (__any_sync(~0u, x)) o[0] = 1;"), []);
        assert_eq!(of("#if __CUDA_ARCH__ < 700\nx += __shfl_down(x, 16);\n#endif\n"), []);
        let either =
            |condition: &str| of(&format!("#if {condition}\nx = __shfl(x, 1);\n#else\nx = __shfl_up(x, 1);\n#endif\n"));
        assert_eq!(either("CUDA_VERSION < 9000"), [(By::Shuffle, 1, 5)]);
        assert_eq!(either("!defined(USE_ROCM)"), [(By::Shuffle, 1, 3)]);
        assert_eq!(either("X"), []);
        let helper = "__device__ int f(int x) { return __shfl_xor(x, 1); }\n";
        assert_eq!(exchanges(&format!("{helper}{}", kernel("o[0] = f(x);"))), [(By::Shuffle, 1, 1)]);
        assert_eq!(exchanges(&format!("#define __shfl_down(x, n) f(x, n)\n{}", kernel("x += __shfl_down(x, 1);"))), []);
        assert_eq!(exchanges(&format!("#include <hip/hip_runtime.h>\n{}", kernel("x = __shfl(x, 1);"))), []);
        assert_eq!(exchanges("__device__ int __shfl(int x, int warp) { return x; }"), []);
    }

    #[test]
    fn a_reduction_through_volatile_memory_is_found() {
        let steps = "s[t] += s[t + 16];\ns[t] += s[t + 8]; s[t] += s[t + 4]; s[t] += s[t + 2];";
        let given = format!("__device__ void reduce(volatile int* s, int t) {{\n{steps} }}");
        assert_eq!(exchanges(&given), [(By::Memory, 3, 3)], "the first step reads what was stored before the call");
        let own = format!(
            "__global__ void k() {{ volatile __shared__ int s[64]; int t = threadIdx.x;\nif (t < 32) {{ {steps} }} }}"
        );
        assert_eq!(exchanges(&own), [(By::Memory, 3, 3)]);
        let stored = own.replace("if (t < 32)", "s[t] = t; if (t < 32)");
        assert_eq!(exchanges(&stored), [(By::Memory, 4, 2)], "nothing waits between the store and the first step");
        let guarded: String =
            [16, 8, 4, 2, 1].map(|lanes| format!("if (id < {lanes}) s[t] += s[t + {lanes}];\n")).concat();
        let global = format!("__global__ void k(volatile int* s, int t) {{\n{steps} }}");
        assert_eq!(exchanges(&global), [], "what a kernel is given is no shared memory");
        let kernel = |between: &str| {
            exchanges(&format!(
                "__global__ void k(float* o) {{ __shared__ volatile float s[128]; int t = threadIdx.x, id = t & 31;\ns[t] = o[t];\n\
                 {between}{guarded}o[t] = s[t]; }}"
            ))
        };
        assert_eq!(kernel(""), [(By::Memory, 5, 3)]);
        assert_eq!(kernel("__syncthreads();\n"), [(By::Memory, 4, 5)]);
        assert_eq!(exchanges(&given.replace("volatile ", "")), []);
        assert_eq!(exchanges(&given.replace(";\n", "; __syncwarp();\n").replace("; s", "; __syncwarp(); s")), []);
    }
}
