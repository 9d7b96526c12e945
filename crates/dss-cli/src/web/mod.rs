//! `dss web`: the page on this machine, for this machine only.

mod http;
mod page;

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::args::WebArgs;
use crate::failure::Failure;
use crate::output;
use page::Page;

/// A browser that says nothing for so long has gone.
const PATIENCE: Duration = Duration::from_secs(10);

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
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                let page = page.clone();
                // A browser that goes away in the middle of an answer is none of our business.
                std::thread::spawn(move || drop(answer(&stream, &page)));
            }
            // Too many open files, most likely: others will be closed.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn answer(stream: &TcpStream, page: &Page) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let head = http::read_head(stream)?;
    http::respond(page, &head).write(stream)
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
