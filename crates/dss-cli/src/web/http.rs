//! The part of HTTP that a static page needs: GET and HEAD of its files.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use super::page::Page;

/// The longest head of a request.
const MAX_HEAD: usize = 16 << 10;

/// The page may load its own files, start its own threads from memory, and talk to nobody else.
const POLICY: &str = "default-src 'none'; script-src 'self' blob: 'wasm-unsafe-eval'; worker-src blob:; \
                      style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'";

/// Status, type and content.
#[derive(Debug, PartialEq)]
pub struct Response {
    status: &'static str,
    kind: &'static str,
    body: Cow<'static, [u8]>,
    /// Without the content itself.
    head_only: bool,
}

impl Response {
    /// The response of a server with too many connections.
    pub fn busy() -> Self {
        Self::text("503 Service Unavailable")
    }

    fn text(status: &'static str) -> Self {
        let body = format!("{status}\n").into_bytes().into();
        Self { status, kind: "text/plain; charset=utf-8", body, head_only: false }
    }

    /// Sends it.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let Self { status, kind, body, head_only } = self;
        let length = body.len();
        // Cross-origin isolation gives the page finer clocks.
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\
             Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Content-Security-Policy: {POLICY}\r\nCross-Origin-Opener-Policy: same-origin\r\n\
             Cross-Origin-Embedder-Policy: require-corp\r\nCross-Origin-Resource-Policy: same-origin\r\n\r\n"
        );
        to.write_all(head.as_bytes())?;
        if !head_only {
            to.write_all(body)?;
        }
        to.flush()
    }
}

/// Reads the head of a request, everything up to the empty line, or says what is wrong with it.
pub fn read_head(mut from: impl Read) -> io::Result<Result<String, Response>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = from.read(&mut part)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if head.len() + count > MAX_HEAD {
            return Ok(Err(Response::text("431 Request Header Fields Too Large")));
        }
        head.extend(&part[..count]);
    }
    Ok(String::from_utf8(head).map_err(|_| Response::text("400 Bad Request")))
}

/// Answers a request with a file of the page.
pub fn respond(page: &Page, head: &str) -> Response {
    let mut lines = head.split("\r\n");
    let mut request = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version)) =
        (request.next(), request.next(), request.next())
    else {
        return Response::text("400 Bad Request");
    };
    if !version.starts_with("HTTP/1.") {
        return Response::text("505 HTTP Version Not Supported");
    }
    // Another name for this machine means that a foreign page is asking.
    let host = lines.filter_map(|line| line.split_once(':'));
    let mut host = host.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    if !host.next().is_some_and(|(_, host)| is_local(host.trim())) {
        return Response::text("403 Forbidden");
    }
    if !["GET", "HEAD"].contains(&method) {
        return Response::text("405 Method Not Allowed");
    }
    match path(target).and_then(|path| page.file(&path)) {
        Some((kind, body)) => {
            Response { status: "200 OK", kind, body, head_only: method == "HEAD" }
        }
        None => Response::text("404 Not Found"),
    }
}

/// The host, with or without a port, is this machine.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| name.eq_ignore_ascii_case(local))
}

/// The path in a target such as `/a%20b.js?x`.
fn path(target: &str) -> Option<PathBuf> {
    let path = target.split(['?', '#']).next()?.strip_prefix('/')?;
    decoded(path).map(PathBuf::from)
}

/// %41 is A. A backslash or a control character has no place in a name.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    let wrong = |b: &u8| b.is_ascii_control() || *b == b'\\';
    if bytes.iter().any(wrong) { None } else { String::from_utf8(bytes).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a page in it and a secret beside it, removed in the end.
    struct Site(PathBuf);

    impl Site {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("dss-http-{}-{name}", std::process::id()));
            std::fs::create_dir_all(root.join("site/models")).unwrap();
            std::fs::write(root.join("site/index.html"), "page").unwrap();
            std::fs::write(root.join("site/a b.wasm"), "code").unwrap();
            std::fs::write(root.join("secret"), "secret").unwrap();
            Self(root)
        }

        fn get(&self, target: &str) -> Response {
            self.ask(&format!("GET {target} HTTP/1.1\r\nHost: localhost:80\r\n\r\n"))
        }

        fn ask(&self, head: &str) -> Response {
            respond(&Page::Folder(self.0.join("site").canonicalize().unwrap()), head)
        }
    }

    impl Drop for Site {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_come_with_their_kind() {
        let site = Site::new("kinds");
        for target in ["/", "/index.html", "/?engine=plain", "/index.html#x"] {
            let response = site.get(target);
            assert_eq!((response.status, &response.body[..]), ("200 OK", &b"page"[..]), "{target}");
            assert_eq!(response.kind, "text/html; charset=utf-8");
        }
        assert_eq!(site.get("/a%20b.wasm").kind, "application/wasm");
        assert_eq!(site.get("/models").status, "404 Not Found");
        assert_eq!(site.get("/none.js").status, "404 Not Found");
        let head = site.ask("HEAD / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
        let mut sent = Vec::new();
        head.write(&mut sent).unwrap();
        let sent = String::from_utf8(sent).unwrap();
        assert!(sent.contains("Content-Length: 4\r\n") && sent.ends_with("\r\n\r\n"), "{sent}");
    }

    #[test]
    fn nothing_outside_the_folder() {
        let site = Site::new("outside");
        for target in [
            "/../secret",
            "/%2e%2e/secret",
            "/models/../../secret",
            "/..%2fsecret",
            "/..\\secret",
            "//etc/passwd",
            "/%2Fetc/passwd",
            "secret",
            "/%",
            "/%zz",
            "/%00",
            "/%ff",
            "",
        ] {
            assert_eq!(site.get(target).status, "404 Not Found", "{target}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(site.0.join("secret"), site.0.join("site/link")).unwrap();
            assert_eq!(site.get("/link").status, "404 Not Found");
        }
    }

    #[test]
    fn the_page_in_the_program() {
        let get = |target: &str| {
            respond(&Page::Embedded, &format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        };
        assert_eq!(get("/"), get("/index.html"));
        assert_eq!(get("/?engine=plain").kind, "text/html; charset=utf-8");
        for name in ["/dss-plain.wasm", "/dss-simd.wasm"] {
            assert!(get(name).body.starts_with(b"\0asm"), "{name}");
        }
        assert_eq!(get("/models/text.safetensors").status, "200 OK");
        for target in ["/models", "/models/../index.html", "//index.html", "/Cargo.toml"] {
            assert_eq!(get(target).status, "404 Not Found", "{target}");
        }
    }

    #[test]
    fn only_this_machine_may_read_and_nothing_else() {
        let site = Site::new("who");
        for (head, status) in [
            ("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403 Forbidden"),
            ("GET / HTTP/1.1\r\nHost: localhost.evil.example:80\r\n\r\n", "403 Forbidden"),
            ("GET / HTTP/1.1\r\n\r\n", "403 Forbidden"),
            ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", "405 Method Not Allowed"),
            ("GET / HTTP/2\r\nHost: localhost\r\n\r\n", "505 HTTP Version Not Supported"),
            ("\r\n\r\n", "400 Bad Request"),
        ] {
            assert_eq!(site.ask(head).status, status, "{head}");
        }
        for host in ["[::1]:8", "LOCALHOST", "LocalHost:80"] {
            let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(site.ask(&head).status, "200 OK", "{host}");
        }
    }

    #[test]
    fn heads_end_and_are_short() {
        let head = read_head(&b"GET / HTTP/1.1\r\n\r\nrest"[..]).unwrap();
        assert_eq!(head.unwrap().len(), 22);
        assert!(read_head(&b"GET / HTTP/1.1\r\n"[..]).is_err());
        let refused = |from: &mut dyn Read| read_head(from).unwrap().unwrap_err().status;
        assert_eq!(refused(&mut io::repeat(b'x')), "431 Request Header Fields Too Large");
        assert_eq!(refused(&mut &b"GET /\xff HTTP/1.1\r\n\r\n"[..]), "400 Bad Request");
    }
}
