//! What packagers install beside the program says what the program says: completions, the man page, and `--help`.

use std::process::{Command as Process, Output};

use clap::{Arg, Command, CommandFactory};
use warplint::cli::Cli;

const SHELLS: [&str; 5] = ["bash", "elvish", "fish", "powershell", "zsh"];

fn warplint(args: &[&str]) -> Output {
    let output = Process::new(env!("CARGO_BIN_EXE_warplint")).args(args).output().expect("it runs");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{args:?}");
    output
}

fn printed(args: &[&str]) -> String {
    String::from_utf8(warplint(args).stdout).expect("text")
}

/// Every command that is shown, with the words that call it.
fn commands() -> Vec<(Vec<String>, Command)> {
    let mut root = Cli::command();
    root.build();
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), root)];
    while let Some((words, command)) = open.pop() {
        for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
            open.push(([words.clone(), vec![below.get_name().to_owned()]].concat(), below.clone()));
        }
        found.push((words, command));
    }
    assert!(found.len() > 8, "the commands are found");
    found
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set())
}

/// Words alone: without what lays them out.
fn words(text: &str) -> String {
    let mut plain = text.to_owned();
    for (roff, meant) in
        [("\\fB", ""), ("\\fI", ""), ("\\fR", ""), ("\\-", "-"), ("\\&", ""), ("\\*(Aq", "'"), ("\\\\", "\\")]
    {
        plain = plain.replace(roff, meant);
    }
    let words = plain.split_whitespace().filter(|word| ![".PP", ".TP", ".br"].contains(word));
    words.collect::<Vec<&str>>().join(" ")
}

#[test]
fn completions_hold_every_command_and_option() {
    for shell in SHELLS {
        let script = printed(&["completions", shell]);
        for (path, command) in commands() {
            if let Some(name) = path.last() {
                assert!(script.contains(name.as_str()), "{shell} knows no {path:?}");
            }
            for long in shown(&command).filter_map(Arg::get_long) {
                // fish writes `-l gpu`, and the others `--gpu`.
                let is_there = script.contains(&format!("--{long}")) || script.contains(&format!("-l {long}"));
                assert!(is_there, "{shell} knows no --{long} of {path:?}");
            }
        }
    }
}

#[test]
fn bash_reads_its_completions_and_completes() {
    let Ok(version) = Process::new("bash").arg("--version").output() else { return };
    if !version.status.success() || cfg!(windows) {
        return;
    }
    let script = format!(
        "source <('{}' completions bash); COMP_WORDS=(warplint r); COMP_CWORD=1; _warplint warplint r warplint; \
         echo \"${{COMPREPLY[*]}}\"",
        env!("CARGO_BIN_EXE_warplint")
    );
    let output = Process::new("bash").args(["-c", &script]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "run rules\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_man_page_and_the_help_say_the_same_of_every_command_and_option() {
    let page = printed(&["man"]);
    let (own, rest) = page.split_once(".SH COMMANDS").expect("the commands");
    for (path, command) in commands() {
        let section = match path.as_slice() {
            [] => own,
            path => {
                let heading = format!(".SS \"warplint {}\"", path.join(" "));
                let after = rest.split_once(&heading).unwrap_or_else(|| panic!("no {heading}")).1;
                after.split("\n.SS ").next().expect("the first")
            }
        };
        let man = words(section);
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = words(&printed(&args));
        for arg in shown(&command).filter(|arg| arg.get_id() != "help") {
            let says = words(&arg.get_help().expect("every option says what it is").to_string());
            assert!(!says.is_empty() && man.contains(&says), "man, {path:?}, {}: {says}\n{man}", arg.get_id());
            assert!(help.contains(&says), "--help, {path:?}, {}: {says}\n{help}", arg.get_id());
            let long = arg.get_long().map(|long| format!("--{long}")).unwrap_or_default();
            assert!(man.contains(&long) && help.contains(&long), "{path:?}: {long}");
        }
        let about = command.get_long_about().or(command.get_about()).expect("every command says what it does");
        let about = words(&about.to_string());
        assert!(man.contains(&about) && help.contains(&about), "{path:?}: {about}\n{man}");
        if let Some(after) = command.get_after_help() {
            let after = words(&after.to_string());
            assert!(help.contains(&after) && (man + &words(rest)).contains(&after), "{path:?}: {after}");
        }
    }
}

#[test]
fn a_reader_of_the_man_page_that_goes_away_is_no_failure() {
    let mut child = Process::new(env!("CARGO_BIN_EXE_warplint"))
        .arg("man")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
