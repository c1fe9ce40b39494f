"""Programs that show the state of the machine.

A host that is named for ss, arp or lsof is looked up: the name itself may carry something to another machine.
"""

TABLE = r"""
uname uptime free vmstat mpstat iostat nfsiostat w id locale getconf: bare
who last lastb lslogins findmnt pgrep: reads; bare
lastlog: reads; bare; not -C --clear -S --set
pidof pstree lscpu lsblk lsusb lsmod lsmem lsns lsipc: bare
pmap: not -n -N -c -C --create-rc --create-rc-to --read-rc --read-rc-from
cpuid hwinfo lshw dmidecode modinfo: only -short -class -C -s -t -q --class --type --help --version -F -b -c
inxi: only -C -s -t -q --help --version -F -b; operands 0
lspci: not -q -Q -H -A -O -F
date gdate: only -u --utc --universal -R --rfc-email --rfc-2822 --rfc-3339 -I -Idate -Ihours -Iminutes -Iseconds -Ins
      --iso-8601 --debug --resolution --help --version -j -n; like \+.*; values -d --date -r --reference -v --rfc-3339
hostname: operands 0; only -f -s -i -I -d -a -A --fqdn --long --short --ip-address --all-ip-addresses --domain
      --alias --all-fqdns --help --version
domainname: operands 0; only
dmesg: not -c -C -D -E -n -F -K --file --kmsg-file --clear --read-clear --console-off --console-on --console-level
journalctl: not --vacuum-size --vacuum-time --vacuum-files --rotate --flush --sync --relinquish-var
      --smart-relinquish-var --setup-keys --update-catalog --cursor-file --interval --verify-key --force
ss: not -K --kill -E -D --diag -F --filter; like (?s)/.*|(?!.*[^\W_]\.[^\W\d_]).*
netstat: not -F
ifconfig: operands 1; only -a -s -v -l; bare
arp: only -a -n -e -v -i; values -i; like [\d.]+
route: only -n -e -ee -v -4 -6; operands 0
ip: only -4 -6 -0 -br -brief --brief -c -color -d -details -s -stats -statistics -o -oneline -j -json -p -pretty
      -h -human -human-readable -r -resolve -t -timestamp -ts -tshort -a -all -iec -V -Version; values -n -netns -family
      -f -rc -rcvbuf -l -loops; single
  a|ad|add|addr|addre|addres|address: like (?:show|list|lst|ls|l|sh|dev|up|scope|label|to|type|permanent|dynamic|
      [a-z]+\d[\w.@-]*|lo|global|link|host|\S*[.:]\S*)
  l|li|lin|link: like (?:show|list|lst|ls|l|sh|dev|up|type|group|default|master|vrf|bridge|vlan|veth|
      [a-z]+\d[\w.@-]*|lo)
  r|ro|rou|rout|route: like (?:show|list|lst|ls|l|sh|get|table|all|main|local|default|dev|scope|proto|root|match|
      exact|from|\S*[.:\d]\S*|lo)
  ru|rul|rule|n|ne|nei|neig|neigh|neighbor|neighbour|ntable|tunnel|tuntap|tunt|maddr|maddress|m|mroute|netconf|
      tcp_metrics|token|vrf|l2tp|addrlabel|sr: like (?:show|list|lst|ls|l|sh|dev|nud|proxy|all|table|
      [a-z]+\d[\w.@-]*|lo)
  st|sta|stat|stats: like (?:show|group|link|offload|subgroup|afstats|dev|[a-z]+\d[\w.@-]*|lo)
  mo|mon|moni|monit|monitor: like (?:all|address|link|neigh|route|rule|mroute|prefix|netconf|nsid|label|dev|
      [a-z]+\d[\w.@-]*)
  netn|netns: like (?:list|list-id|identify|show|ls|\d+)
  netns pids: operands 1
  x|xf|xfrm state|policy: like (?:list|show|ls|count)
getent: bare; flags -i --no-idn -A --no-addrconfig; not -s --service
  passwd|group|services|protocols|networks|ethers|rpc|netgroup|initgroups
  hosts|ahosts|ahostsv4|ahostsv6: network; hosts
sysctl: not -w -p -f --write --load --system --ignore; like [\w.*-]+|[\w/*-]+|[\w*-]+(?:[./][\w*-]+)*
systemctl: not -H --host -M --machine; flags --user --system -a --all -l --full -q --quiet -r --recursive --failed
      --plain --value --reverse --after --before --no-pager --no-legend --show-types; values -t --type --state -p
      --property -P -n --lines -o --output --timestamp
  status|show|cat|list-units|list-unit-files|list-timers|list-sockets|list-dependencies|list-jobs|list-machines|
      is-active|is-enabled|is-failed|is-system-running|get-default|help
loginctl timedatectl hostnamectl localectl networkctl resolvectl: bare; not -H --host; flags -a --all -l --full -q
      --quiet -4 -6 --value --no-pager --no-legend; values -p --property -P -n --lines -o --output
  status|show|list|list-sessions|list-users|list-seats|session-status|user-status|show-session|show-user|
      list-timezones|timesync-status|list-locales|list-keymaps
service: only; like (?:status|[\w@.-]+)
  --status-all
top: needs -b; only -b -n -c -H -i -o -p -u -d -w -1 -v -h; values -n -o -p -u -d
stty: only -a --all -g --save; like size
tput: operands 1; only; like (?:cols|lines|colors|longname)
crontab: needs -l; only -l -u; operands 0; values -u
atq: bare
ulimit: only -a -H -S -n -u -c -d -f -l -m -s -t -v; operands 0; bare
umask: operands 0; only -p -S; bare
jobs: only -l -p -r -s -n
dirs: only -p -v -l
help: like [\w:.\[\]()!-]+
man: only -k -f -w -a --apropos --whatis --where --path -K; like [\w:.+@-]+
info: reads; bare; only --version --help
cheat: only --version --help
tldr: operands 0; only --version --help
nvidia-smi: only -q -L -i --query-gpu --format --query-compute-apps --list-gpus; values -i; like dmon|pmon
lsb_release sw_vers acpi: only -a -d -r -c -s -i -h -A -u -j -V -t --all --short --id --release
      --codename --description -productVersion -buildVersion -productName --version
sensors: only -A -f -h -j -u -v --no-adapter --fahrenheit --help --version
cpupower: values -c --cpu; flags -d --debug
  frequency-info|idle-info|powercap-info|info|--version|-v|--help|-h
openssl: single; urls
  help: operands 1
  version: only -a -v -b -o -f -p -d -e -m -r -c; operands 0
  list: only -digest-commands -cipher-commands -digest-algorithms -cipher-algorithms -commands -standard-commands
      -disabled -public-key-algorithms -public-key-methods -1 -verbose -mac-algorithms -kdf-algorithms -tls-groups
  x509: reads; only -noout -issuer -subject -serial -fingerprint -modulus -text -dates -startdate -enddate -purpose
      -hash -issuer_hash -subject_hash -email -ocsp_uri -ext -pubkey -sha1 -sha256 -sha512 -md5 -in -inform -nameopt
      -certopt -checkend -checkhost -checkip -checkemail -alias; values -in; schemeless
  crl|req: reads; only -noout -text -issuer -subject -verify -in -inform -pubkey -modulus -fingerprint -nextupdate
      -lastupdate -hash -crlnumber; values -in; schemeless
  dgst|sha256|sha1|md5|sha512: reads; only -sha256 -sha1 -sha512 -sha384 -md5 -hex -r -c -binary -list
  ciphers|errstr|prime: only -v -V -s -tls1 -tls1_2 -tls1_3 -stdname -hex
  rand: only -hex -base64; operands 1; like \d+
  s_client: secret
gzip gunzip: reads; needs -l --list -t --test -c --stdout --to-stdout --version --help -V -h; only -l --list -t
      --test -v -q --verbose --quiet -c --stdout --to-stdout -d --decompress -k --keep --version --help -f -V -h -L
      -N -n -#; last
zipinfo: reads
7z 7za 7zr 7zz: bare; response; flags -y -r -slt -ba -bd
  l|t|h: reads; not -o -w -x -i -so -si; response
  i|b: not -o -w -x -i -so -si; response
  --help|-h
rar unrar: reads; not -o -i
  l|lt|lb|v|vt|vb|t
dpkg: needs -l -L -s -S -p -I -c -C -V --list --listfiles --status --search --print-avail --get-selections --audit
      --verify --print-architecture --info --contents --version --help; only -l -L -s -S -p -I -c -C -V --list
      --listfiles --status --search --print-avail --get-selections --audit --verify --print-architecture --info
      --contents --version --help
dpkg-query: only -l -L -s -S -W -p -f --list --listfiles --status --search --show --showformat --print-avail; values
      -f
apt apt-cache: flags -q -qq --quiet -a --all-versions --installed --upgradable; values -t --target-release
      ; not -o -c -p -s --option --config-file --pkg-cache --src-cache
  list|show|search|policy|depends|rdepends|showsrc|showpkg|madison|pkgnames|stats|dump
apt-mark: not -o -c -f
  showauto|showmanual|showhold|showinstall|showremove|showpurge
rpm: urls; plain; needs -q --query --version; only -q -a -i -l -f -p -c -d -R --query --all --info --list --file
      --provides --requires --whatprovides
      --whatrequires --changelog --scripts --last --qf --queryformat --version; values --qf
      --queryformat
dnf yum: flags -q --quiet -v --verbose -C --cacheonly -y --assumeyes; values -x --exclude --repo --repoid --enablerepo
      --disablerepo; not -c --config --installroot --setopt; network
  list|info|search|provides|repolist|repoquery|check-update
  history list|info
pacman: only -Q -Qi -Ql -Qs -Qe -Qm -Qn -Qo -Qk -Qu -Qq -Qd -Qt -Qdt -Qdtq -Si -Ss -Sl -V
apk: only -e -v -a -L -d -R -W -q --installed
  info|list|search|version|policy|stats
snap flatpak: network; flags --user --system -v --verbose
  list|info|find|version|search|remotes|history
prometheus promtool: needs --version --help --help-long --help-man -h; only --version --help --help-long --help-man -h
"""
