#!/bin/bash
# Makes the image that others are built on, where no registry of images can be asked: this machine's distribution by debootstrap, and
# its Node. It holds this machine's settings of npm, so it must never be published.
#   base.sh TAG
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The mirror that this machine's packages come from; without one debootstrap takes its own.
mirror=$(cat /etc/apt/sources.list.d/*.sources 2>/dev/null | awk -v suite="$codename" '
  /^URIs:/ { uri = $2 }
  /^Suites:/ { for (i = 2; i <= NF; i++) if ($i == suite) { print uri; exit } }')
if [[ -z $mirror && -f /etc/apt/sources.list ]]; then
  mirror=$(awk -v suite="$codename" '$1 == "deb" && $2 ~ /^http/ && $3 == suite { print $2; exit }' /etc/apt/sources.list)
fi
debootstrap --variant=minbase "$codename" "$work/root" ${mirror:+"$mirror"} >"$work/debootstrap.log" 2>&1 ||
  { tail -20 "$work/debootstrap.log" >&2; exit 1; }
rm -rf "$work"/root/var/cache/apt/archives/*.deb

cp "$(readlink -f "$(command -v node)")" "$work/root/usr/local/bin/node"
mkdir -p "$work/root/usr/local/lib/node_modules" "$work/root/usr/local/etc"
cp -r "$(npm root --global)/npm" "$work/root/usr/local/lib/node_modules/"
for tool in npm npx; do ln -s "../lib/node_modules/npm/bin/$tool-cli.js" "$work/root/usr/local/bin/$tool"; done
chroot "$work/root" useradd --create-home --uid 1000 node

# How npm reaches its packages from here.
for name in userconfig globalconfig; do
  file=$(npm config get "$name")
  [[ -f $file ]] || continue
  [[ $name == userconfig ]] && cp "$file" "$work/root/root/.npmrc" || cp "$file" "$work/root/usr/local/etc/npmrc"
done
changes=()
if [[ -n ${NODE_EXTRA_CA_CERTS:-} ]]; then
  cp "$NODE_EXTRA_CA_CERTS" "$work/root/etc/build-ca.pem"
  changes=(--change "ENV NODE_EXTRA_CA_CERTS=/etc/build-ca.pem")
fi
tar --directory "$work/root" --create . | podman import --quiet ${changes[@]+"${changes[@]}"} - "$1" >/dev/null
