//! `dss completions` and `dss man`

use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output;

/// In bash, no space follows a key such as `train.lr=`.
const NO_SPACE: &str = "
_dss_no_space() {
    _dss \"$@\"
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -F _dss_no_space -o bashdefault -o default dss
";

/// The script with which a shell completes what is typed.
pub fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dss", &mut script);
    if shell == Shell::Bash {
        script.extend_from_slice(NO_SPACE.as_bytes());
    }
    output::bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The manual page of the program, or those of all its commands in a folder.
pub fn pages(out: Option<&Path>) -> Result<ExitCode, Failure> {
    let Some(out) = out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        output::bytes(&page)?;
        return Ok(ExitCode::SUCCESS);
    };
    let written =
        std::fs::create_dir_all(out).and_then(|()| clap_mangen::generate_to(Cli::command(), out));
    written.map_err(|e| Failure::failed(eyre::eyre!("cannot write to {}: {e}", out.display())))?;
    Ok(ExitCode::SUCCESS)
}
