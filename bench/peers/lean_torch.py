"""Make a CUDA build of PyTorch importable without the CUDA libraries.

The torch wheel for Linux links against cuBLAS, cuDNN, NCCL and others, about
2 GB that a CPU run never calls. This writes one small shared library which
defines the symbols torch expects from them (each one traps if ever called) and
links it under the missing names next to torch's own libraries. Nothing of
torch itself is changed. Needs `cc` and `nm`.
"""

import pathlib
import subprocess
import sys
import sysconfig
import tempfile

# Library name -> prefix of the symbols it exports without a version.
STUBBED = {
    "libcublas.so.13": None,
    "libcublasLt.so.13": None,
    "libcudnn.so.9": None,
    "libcufft.so.12": None,
    "libcusparse.so.12": None,
    "libnvrtc.so.13": None,
    "libcusparseLt.so.0": "cusparseLt",
    "libnccl.so.2": "nccl",
    "libnvshmem_host.so.3": "nvshmem",
}
VERSIONS = set(STUBBED) | {"NVSHMEM"}
PREFIXES = tuple(p for p in STUBBED.values() if p)


def wanted_symbols(lib_dir):
    """Symbols the torch libraries import, as {version or "": set of names}."""
    libs = sorted(str(p) for p in lib_dir.glob("lib*.so"))
    listing = subprocess.run(
        ["nm", "-D", "--undefined-only", *libs], check=True, capture_output=True, text=True
    ).stdout
    wanted = {}
    for line in listing.splitlines():
        if not line.strip() or line.endswith(":"):
            continue
        name, _, version = line.split()[-1].partition("@")
        version = version.lstrip("@")
        if version in VERSIONS or (not version and name.startswith(PREFIXES)):
            wanted.setdefault(version, set()).add(name)
    return wanted


def main():
    lib_dir = pathlib.Path(sysconfig.get_path("purelib")) / "torch" / "lib"
    if not lib_dir.is_dir():
        sys.exit(f"lean_torch: no torch libraries in {lib_dir}")
    wanted = wanted_symbols(lib_dir)
    names = sorted(set().union(*wanted.values()))
    source = "\n".join(f"void {n}(void) {{ __builtin_trap(); }}" for n in names)
    script = "\n".join(
        f"{v} {{ {'global: ' * (v in wanted)}{' '.join(n + ';' for n in sorted(wanted.get(v, ())))} }};"
        for v in sorted(VERSIONS)
    )
    stub = lib_dir / "libcuda_absent.so"
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        (tmp / "stub.c").write_text(source + "\n")
        (tmp / "stub.map").write_text(script + "\n")
        subprocess.run(
            ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", "-nostdlib",
             f"-Wl,--version-script={tmp / 'stub.map'}",
             str(tmp / "stub.c"), "-o", str(stub)],
            check=True,
        )
    for soname in STUBBED:
        link = lib_dir / soname
        link.unlink(missing_ok=True)
        link.symlink_to(stub.name)
    print(f"lean_torch: {len(names)} symbols in {stub.name}, {len(STUBBED)} names")


if __name__ == "__main__":
    main()
