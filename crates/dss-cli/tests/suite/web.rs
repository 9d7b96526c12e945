//! `dss web`: the page in the program, or that of a folder, over HTTP, for this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::common::Folder;

/// A server that ends with the test.
struct Server(Child, String);

impl Server {
    fn new(folder: &Folder, args: &[&str]) -> Self {
        let mut command = folder.command(&[&["web", "--no-open", "--port", "0"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let host = address.trim().strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
        Self(child, host)
    }

    fn connect(&self) -> TcpStream {
        let port = self.1.rsplit_once(':').unwrap().1.parse().unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap()
    }

    fn get(&self, target: &str) -> String {
        let mut stream = self.connect();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", self.1).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_page_is_served_from_an_empty_folder() {
    let folder = Folder::new();
    let server = Server::new(&folder, &[]);
    let page = server.get("/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("app.js"), "{page}");
    assert!(server.get("/../Cargo.toml").starts_with("HTTP/1.1 404"));
}

#[test]
fn the_page_of_a_folder() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path("page")).unwrap();
    std::fs::write(folder.path("page/index.html"), "<title>page</title>").unwrap();
    std::fs::write(folder.path("page/dss.wasm"), "code").unwrap();
    std::fs::write(folder.path("secret"), "secret").unwrap();
    let server = Server::new(&folder, &["--dir", "page"]);
    let page = server.get("/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.ends_with("\r\n\r\n<title>page</title>"), "{page}");
    assert!(server.get("/dss.wasm").contains("Content-Type: application/wasm\r\n"));
    assert!(server.get("/../secret").starts_with("HTTP/1.1 404"));
}

#[test]
fn missing_parts_are_named() {
    let folder = Folder::new();
    folder.run(&["web", "--dir", ".", "--no-open"]).fails(1, &["no index.html", "web/build"]);
    folder.run(&["web", "--port", "x"]).fails(2, &["--port"]);
}

#[test]
fn long_heads_and_many_connections_are_refused() {
    let folder = Folder::new();
    std::fs::write(folder.path("index.html"), "page").unwrap();
    let server = Server::new(&folder, &["--dir", "."]);
    let mut stream = server.connect();
    write!(stream, "GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(40_000)).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");

    let silent: Vec<TcpStream> = (0..32).map(|_| server.connect()).collect();
    let refused = |server: &Server| {
        let mut answer = String::new();
        let _ = server.connect().read_to_string(&mut answer);
        answer
    };
    assert!(refused(&server).starts_with("HTTP/1.1 503 "));
    drop(silent);
    // Their threads notice within a moment.
    let free = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        server.get("/").starts_with("HTTP/1.1 200 ")
    });
    assert!(free);
}
