//! One connection: a request and its answer, with limits on its time and on the number of connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::http::{self, Response};
use super::page::Page;

/// Connections at once. A browser opens six.
const MOST: usize = 32;
/// Time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time for a client to receive an answer.
const FAREWELL: Duration = Duration::from_secs(1);

/// The connections that are open: each holds a clone.
#[derive(Clone, Default)]
pub struct OpenConnections(Arc<()>);

impl OpenConnections {
    fn count(&self) -> usize {
        Arc::strong_count(&self.0) - 1
    }
}

/// Answers on a thread of its own. Where no thread can start, the connection is closed.
pub fn serve(stream: TcpStream, page: &Page, open: &OpenConnections) {
    if open.count() >= MOST {
        // Fits into the buffers of the system, so this does not wait.
        let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
        let _ = Response::busy().write(&stream);
        return;
    }
    let (page, place) = (page.clone(), open.clone());
    let answer = move || {
        let _place = place;
        // A browser may go away in the middle of an answer.
        let _ = answer(&stream, &page, PATIENCE);
    };
    let _ = std::thread::Builder::new().spawn(answer);
}

fn answer(stream: &TcpStream, page: &Page, patience: Duration) -> io::Result<()> {
    let mut timed = DeadlineStream { stream, end: Instant::now() + patience };
    let response = match http::read_head(&mut timed)? {
        Ok(head) => http::respond(page, &head),
        Err(refusal) => refusal,
    };
    response.write(&mut timed)?;
    // Closing while there is something to be read would take the answer back.
    stream.shutdown(Shutdown::Write)?;
    timed.end = timed.end.min(Instant::now() + FAREWELL);
    io::copy(&mut timed, &mut io::sink()).map(drop)
}

/// A stream that fails when its time is over, however many bytes still come.
struct DeadlineStream<'a> {
    stream: &'a TcpStream,
    end: Instant,
}

impl DeadlineStream<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for DeadlineStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer)
    }
}

impl Write for DeadlineStream<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A client that sends a byte now and then has no more time than one that sends nothing.
    #[test]
    fn a_request_has_a_bounded_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let dripping = std::thread::spawn(move || {
            while client.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let begin = Instant::now();
        assert!(answer(&stream, &Page::Folder(".".into()), Duration::from_millis(200)).is_err());
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
        drop(stream);
        dripping.join().unwrap();
    }
}
