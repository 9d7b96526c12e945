//! `dss web`: the page on this machine, for this machine only.

mod connection;
mod http;
mod page;

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::args::WebArgs;
use crate::failure::Failure;
use crate::output;
use page::Page;

pub fn run(args: WebArgs) -> Result<ExitCode, Failure> {
    let page = args.dir.map_or(Ok(Page::Embedded), folder)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|e| {
        Failure::failed(eyre::eyre!("cannot listen on port {}: {e}", args.port))
            .hint("choose another one with --port; 0 takes any that is free")
    })?;
    let address = format!("http://localhost:{}/", listener.local_addr()?.port());
    output::line(&address)?;
    eprintln!("serving to this machine only; Ctrl-C ends it");
    if !args.no_open {
        open(&address);
    }
    let open = connection::OpenConnections::default();
    loop {
        match listener.accept() {
            Ok((stream, _)) => connection::serve(stream, &page, &open),
            // Too many open files, most likely: others will be closed.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// The page of a folder.
fn folder(path: PathBuf) -> Result<Page, Failure> {
    if !path.join("index.html").is_file() {
        let what = format!("{} has no index.html", path.display());
        return Err(Failure::failed(eyre::Report::msg(what))
            .hint("build a page with web/build, or leave out --dir to serve the built-in one"));
    }
    Ok(Page::Folder(path.canonicalize()?))
}

/// Asks the desktop for a browser. Where there is none the address was printed.
fn open(address: &str) {
    let (program, args): (_, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(args).arg(address).stdin(Stdio::null()).stdout(Stdio::null());
    let _ = command.stderr(Stdio::null()).spawn();
}
