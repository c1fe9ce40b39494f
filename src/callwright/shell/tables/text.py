"""Programs that search and reshape text."""

TABLE = r"""
grep egrep fgrep ggrep zgrep zegrep zfgrep bzgrep xzgrep: reads; pattern; values -A -B -C -m --context --max-count -e
      -f
zcat bzcat xzcat zstdcat gzcat lzcat: reads
rg ripgrep: reads; pattern; here; not -z --search-zip --pre --pre-glob --hostname-bin; values -A -B -C -m -t -T -g -M
      -j
ag ack: reads; pattern; here; not --pager --search-zip -z --ackrc --output
cut tr nl fold fmt expand unexpand rev column pr colrm col ul look tsort numfmt jq gojq: reads; pattern
uniq: reads; operands 1; last; values -f -s -w --skip-fields --skip-chars --check-chars
sort gsort: reads; not -o --output --compress-program --files0-from
shuf: reads; not -o --output --random-source
xq tomlq: reads; pattern; not -i --in-place -f
base64 base32 basenc: reads; not -o --output
iconv: reads; not -o --output
cal ncal: bare
expr: bare
less more: needs --version --help; only --version --help; operands 0
xmllint: reads; only --format --noout --xpath  --nonet --pretty --huge --recover --html; values
      --xpath
"""
