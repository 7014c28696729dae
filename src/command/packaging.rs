//! `warplint completions` and `warplint man`: what packagers install beside the program, made of the same definition that
//! reads the command line.

use std::io::{self, Write};

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::Man;

use crate::cli::Cli;
use crate::output;

/// Prints the completions of `shell`.
///
/// # Errors
/// When they cannot be written.
pub fn completions(shell: Shell, out: &mut dyn Write) -> miette::Result<()> {
    let mut text = Vec::new();
    generate(shell, &mut Cli::command(), "warplint", &mut text);
    Ok(output::write(None, out, |out| out.write_all(&text))?)
}

/// What no option says.
const REST: &str = r#".SH ENVIRONMENT
.TP
\fBNO_COLOR\fR
Set to anything, there are no colours unless \fB\-\-color\fR asks for them.
.TP
\fBCLICOLOR_FORCE\fR
Set to anything but 0, there are colours without a terminal too.
.SH FILES
.TP
\fIwarplint.toml\fR
The configuration, in the working folder or the nearest one above it up to the root of the repository.
"#;

/// Prints the man page: one for all commands.
///
/// # Errors
/// When it cannot be written.
pub fn man(out: &mut dyn Write) -> miette::Result<()> {
    Ok(output::write(None, out, |out| {
        let mut text = Vec::new();
        page(&mut text)?;
        out.write_all(&text)
    })?)
}

fn page(out: &mut Vec<u8>) -> io::Result<()> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let page = Man::new(command.clone()).title("WARPLINT");
    page.render_title(out)?;
    page.render_name_section(out)?;
    page.render_synopsis_section(out)?;
    page.render_description_section(out)?;
    page.render_options_section(out)?;
    out.extend_from_slice(b".SH COMMANDS\n");
    of_commands(&command, out)?;
    let mut status = Vec::new();
    page.render_extra_section(&mut status)?;
    let status = String::from_utf8_lossy(&status).replace(".SH EXTRA", ".SH \"EXIT STATUS\"");
    out.extend_from_slice(status.as_bytes());
    out.extend_from_slice(REST.as_bytes());
    Ok(())
}

/// The commands below `command`, each with all of its options.
fn of_commands(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_bin_name().unwrap_or(command.get_name());
        writeln!(out, ".SS \"{name}\"")?;
        let page = Man::new(command.clone());
        let mut text = Vec::new();
        page.render_description_section(&mut text)?;
        page.render_synopsis_section(&mut text)?;
        page.render_options_section(&mut text)?;
        if command.get_after_help().is_some() {
            page.render_extra_section(&mut text)?;
        }
        out.extend_from_slice(below(&String::from_utf8_lossy(&text)).as_bytes());
        of_commands(command, out)?;
    }
    Ok(())
}

/// The sections of a page as parts of a section: of their headings only those that tell options apart are kept.
fn below(page: &str) -> String {
    let mut out = String::new();
    for line in page.lines() {
        match line.strip_prefix(".SH ") {
            Some("DESCRIPTION") => {}
            Some("SYNOPSIS" | "OPTIONS" | "EXTRA") => out.push_str(".PP\n"),
            Some(heading) => out.push_str(&format!(".PP\n\\fI{}\\fR\n", heading.trim_matches('"'))),
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}
