//! `dss web`: the page on this machine, for this machine only.

mod connection;
mod http;

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::args::WebArgs;
use crate::failure::Failure;
use crate::output;

/// Where `web/build` puts the page.
const DIST: &str = "web/dist";

pub fn run(args: WebArgs) -> Result<ExitCode, Failure> {
    let folder: Arc<Path> = folder(args.dir)?.into();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(|e| {
        Failure::failed(eyre::eyre!("cannot listen on port {}: {e}", args.port))
            .hint("choose another one with --port; 0 takes any that is free")
    })?;
    let address = format!("http://localhost:{}/", listener.local_addr()?.port());
    output::line(&address)?;
    eprintln!("serving {} to this machine only; Ctrl-C ends it", folder.display());
    if !args.no_open {
        open(&address);
    }
    let open = connection::Open::default();
    loop {
        match listener.accept() {
            Ok((stream, _)) => connection::serve(stream, &folder, &open),
            // Too many open files, most likely: others will be closed.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// The folder of the page: as given, or near the current folder or this program.
fn folder(given: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let build =
        "build the page with web/build in the project's folder, or name its folder with --dir";
    let has_page = |folder: &Path| folder.join("index.html").is_file();
    let found = match given {
        Some(folder) if has_page(&folder) => folder,
        Some(folder) => {
            let what = format!("{} has no index.html", folder.display());
            return Err(Failure::failed(eyre::Report::msg(what)).hint(build));
        }
        None => {
            let starts = [std::env::current_dir().ok(), std::env::current_exe().ok()];
            let near = starts.iter().flatten().flat_map(|start| start.ancestors());
            near.map(|folder| folder.join(DIST)).find(|folder| has_page(folder)).ok_or_else(
                || {
                    Failure::failed(eyre::eyre!(
                        "there is no {DIST} here: the page has not been built"
                    ))
                    .hint(build)
                },
            )?
        }
    };
    found.canonicalize().map_err(Failure::failed)
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
