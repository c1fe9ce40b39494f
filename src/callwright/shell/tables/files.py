"""Programs that look at files and folders.

Programs that search and reshape text.
"""

TABLE = r"""
cat tac head tail wc ls dir vdir stat du df realpath readlink cmp cksum sum md5sum sha1sum sha224sum sha256sum: reads
sha384sum sha512sum b2sum shasum md5 od exa eza lsd: reads
hexdump hd: reads; not -f --format-file; values -e -n -s --format --length --skip
strings size readelf: reads; response
lsattr getfacl namei pathchk: reads
cd pushd popd exit return break continue times: bare
wait: only -n -f; like %?\w+
basename dirname seq sleep true false echo pwd factor nproc arch hostid tty logname whoami groups: bare
users: reads; bare
gcat ghead gtail gls gstat: reads
gdu: reads; only -a -c -d -h -k -s -x -1 -2 -3 --all --human-readable --summarize --total --one-file-system
tree: reads; here; not -o -R --output
file: reads; not -C -m -f -p --preserve-date --compile --magic-file --files-from -z -Z --uncompress -S --no-sandbox
nm: reads; response; not --plugin
objdump: reads; response; not --plugin -S --source --source-comment
xxd: reads; operands 1; last; not -r -revert; values -c -cols -g -l -len -o -s -seek -n -name; single
mktemp: last; needs -u --dry-run --version --help; only -u -d -q -t -p --dry-run --directory --quiet --suffix --tmpdir
      --version --help; values -p --suffix
diff colordiff: reads; recursive
sdiff: reads; recursive; not -o --output --diff-program
diff3: reads; not --diff-program
comm join paste: reads
locate mlocate plocate: bare
which type whereis: bare
whatis apropos: only -d -w -r -e -l --exact --wildcard --regex --long --section -s; values -s
ldconfig: needs -p --print-cache; only -p --print-cache
lsof: not -D -k -m -@; like (?s)(?![46]?(?i:tcp|udp)?@(?!(?:[\d.]+|localhost)(?::|\Z))).*
xattr: reads; not -w -d -c
getfattr: reads
mdls: reads; not -plist; single
cloc: reads; urls; only --by-file --by-file-by-lang --exclude-dir --include-lang --exclude-lang --json --csv --yaml
      --xml --md --quiet --sum-one --not-match-d --match-d --not-match-f --match-f --exclude-ext --include-ext --version
      --help --show-lang
      --show-ext --follow-links --fullpath --hide-rate; values --exclude-dir --include-lang --exclude-lang
tokei: reads
scc: reads; exact; not -o --output --format-multi --gen-langs
delta: reads; recursive; only --side-by-side -s --show-config --list-languages --list-syntax-themes --line-numbers -n
      --dark
      --light --color-only --navigate --width -w --show-syntax-themes --no-gitconfig --diff-so-fancy --raw --version
      --help --keep-plus-minus-markers --diff-highlight --hyperlinks --relative-paths
bat batcat: reads; only -n --number -p --plain -A --show-all -l --language -H --highlight-line --style --color
      --theme -r --line-range --list-themes --list-languages -L --paging --wrap --tabs --terminal-width
      --diff -d --diff-context --file-name --decorations -f --force-colorization --italic-text --map-syntax -m
      --version --help -u --unbuffered -P --squeeze-blank -s; values -l -H --highlight-line -r --line-range
      --language --style --theme --color
zgrep zegrep zfgrep bzgrep xzgrep: reads; recursive; pattern -e -f --regexp --file; values -A -B -C -m -D -d -e -f;
      flags
      --extended-regexp --fixed-strings --ignore-case --word-regexp --line-regexp --no-messages --invert-match --version
      --help --line-number --with-filename --no-filename --only-matching --quiet --silent --text --count --color
      --files-without-match --files-with-matches
grep egrep fgrep ggrep: reads; recursive; pattern -e -f --regexp --file; values -A
      -B -C -m -D -d --after-context --before-context --context --max-count --directories --devices -e -f --regexp
      --file --include --exclude --exclude-from --exclude-dir --label --group-separator --binary-files; flags
      --extended-regexp --fixed-strings --basic-regexp --perl-regexp --ignore-case --no-ignore-case --word-regexp
      --line-regexp --null-data --no-messages --invert-match --version --help --byte-offset --line-number
      --line-buffered --with-filename --no-filename --only-matching --quiet --silent --text --recursive
      --dereference-recursive --files-without-match --files-with-matches --count --initial-tab --null --color --colour
      --binary --no-group-separator
zcat gzcat: reads; only -f -v -q -l -t -h -V -L -n -N --force --verbose --quiet --list --test --version --help
bzcat lzcat xzcat zstdcat: reads; only -v -q -f -t -l --verbose --quiet --force --test --list --version --help
rg ripgrep: reads; recursive; pattern -e -f --regexp --file; here; not -z --search-zip --pre
      --pre-glob --hostname-bin; values -A -B -C -E -M -T -d -e -f -g -j -m -r -t --after-context --before-context
      --color --colors --context --context-separator --dfa-size-limit --encoding --engine --field-context-separator
      --field-match-separator --file --glob --hyperlink-format --iglob --ignore-file --max-columns --max-count
      --max-depth --maxdepth --max-filesize --path-separator --regex-size-limit --regexp --replace --sort --sortr
      --threads --type --type-add --type-clear --type-not
ag: reads; recursive; pattern; here; not --pager --search-zip -z; counts -A -B -C; values -G -m -p -W --depth
      --ignore --ignore-dir --max-count --path-to-ignore --width --workers; flags --ackmate --all-text --all-types
      --hidden --color --nocolor --count --files-with-matches --files-without-matches --filename --nofilename --follow
      --group --nogroup --heading --noheading --ignore-case --case-sensitive --smart-case --invert-match --literal
      --fixed-strings --word-regexp --line-numbers --nonumbers --numbers --null --only-matching --passthrough --silent
      --skip-vcs-ignores --stats --unrestricted --vimgrep --column --list-file-types --version --help --print-long-lines
ack: reads; recursive; pattern --match -f -g; here; not --pager --ackrc --output -x --files-from; counts -A -B
      -C --after-context --before-context --context; values -m -t --match --max-count --type --ignore-dir
      --ignore-directory --ignore-file --range-start --range-end; flags --ignore-case --no-ignore-case --smart-case
      --invert-match --word-regexp --literal --files-with-matches --files-without-matches --count --with-filename
      --no-filename --heading --noheading --group --nogroup --color --nocolor --colour --nocolour --column --print0
      --recurse --no-recurse --follow --nofollow --show-types --sort-files --passthru --flush --version --help
cut nl fold fmt expand unexpand rev column pr ul tsort: reads
tr colrm col numfmt: bare
look: reads; pattern
uniq: reads; operands 1; last; values -f -s -w --skip-fields --skip-chars --check-chars
sort gsort: reads; not -o --output --compress-program --files0-from
shuf: reads; not -o --output --random-source
base64 base32 basenc: reads; not -o --output
iconv: reads; not -o --output
cal ncal yes: bare
bc: reads; bare; only -l --mathlib -q --quiet -s --standard -w --warn -v --version -h --help
expr: bare
less more: reads; only -N -S -R -F -X -E -i -I -n -s -r --version --help --LINE-NUMBERS --chop-long-lines
      --RAW-CONTROL-CHARS --quit-if-one-screen --no-init; like [^+].*
xmllint: reads; urls; only --format --noout --xpath  --nonet --pretty --huge --recover --html; values
      --xpath
"""
