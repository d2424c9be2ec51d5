#!/usr/bin/env bash
# Makes sure that there is a julia for the Julia host: one that works on PATH, or Debian 11's (1.5.3), since Debian 12 has
# none. That one is unpacked into .cache/julia at the repository's root and not installed: its libunwind is older than
# Debian 12's, under which it crashes at the first exception, and no package of the machine may change for a test. Sources,
# lists and downloads of apt's lie in a folder that is removed at the end; /etc/apt and /var/lib never see them.
#
# Prints the program's path. Whatever is in the way is said in one line on stderr, and exits 77: the test is skipped then.
# Usage: install_julia.sh [--find]     --find: downloads nothing
set -euo pipefail
home=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/.cache/julia

give_up() {
  echo "SKIP: julia: $1" >&2
  exit 77
}

works() (
  exec &>/dev/null # also what bash says of a crash
  [[ -x $1 ]] && "$1" --startup-file=no -e 'f(x) = x > 0 ? error() : x; try f(1) catch end' || exit 1
)

for julia in "$(command -v julia || true)" "$home/julia"; do
  if works "$julia"; then
    echo "$julia"
    exit 0
  fi
done
[[ ${1:-} != --find ]] || give_up "none on this machine that works; ./dev test says why it got none"
[[ -x $(command -v apt-get) ]] || give_up "none on PATH, and no apt-get to fetch Debian 11's"
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# The mirror that this machine takes its own Debian from.
mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
         awk -v release="$codename" '$1 == release { print $2; exit }')
[[ $mirror ]] || give_up "none on PATH, and apt has no source for Debian to take the mirror's address from"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 755 "$folder" # apt downloads as a user of its own
mkdir -p "$folder"/{sources,lists/partial,archives/partial,root}
cp /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} "$folder/sources" 2>/dev/null || true
cat >"$folder/sources/bullseye.sources" <<TEXT
Types: deb
URIs: $mirror
Suites: bullseye
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
TEXT
# Only what the machine's own suites lack comes from bullseye.
printf 'Package: *\nPin: release n=bullseye\nPin-Priority: 100\n' >"$folder/preferences"

apt() {
  (cd "$folder/archives" && apt-get -q -y -o Debug::NoLocking=1 -o Acquire::Retries=1 -o Acquire::http::Timeout=30 \
    -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$folder/sources" -o Dir::Etc::Preferences="$folder/preferences" \
    -o Dir::State::Lists="$folder/lists" -o Dir::Cache::Archives="$folder/archives" -o Dir::Cache::pkgcache= \
    -o Dir::Cache::srcpkgcache= "$@") >"$folder/log" 2>&1 ||
    give_up "apt-get $1: $(grep -m 1 '^E:' "$folder/log" || tail -n 1 "$folder/log")"
}
echo "install_julia: fetching julia of $mirror bullseye" >&2
apt update
apt install --download-only --no-install-recommends julia
apt download libunwind8/bullseye
for package in "$folder"/archives/*.deb "$folder"/archives/libunwind8_1.3*.deb; do # the older libunwind on top
  dpkg -x "$package" "$folder/root"
done
# julia's links to libraries that the machine has itself.
for link in "$folder"/root/usr/lib/*/julia/*.so; do
  libraries=/usr/lib/$(basename "$(dirname "${link%/*}")")
  [[ -e $link ]] || ln -sf "$libraries/$(basename "$(readlink "$link")")" "$link"
done
cat >"$folder/root/julia" <<'TEXT'
#!/bin/sh
here=$(dirname "$0")/usr
LD_LIBRARY_PATH=$(echo "$here"/lib/*-linux-gnu)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/bin/julia" "$@"
TEXT
chmod +x "$folder/root/julia"
works "$folder/root/julia" || give_up "Debian 11's does not run on this machine"
mkdir -p "${home%/*}"
rm -rf "$home"
mv "$folder/root" "$home"
echo "$home/julia"
