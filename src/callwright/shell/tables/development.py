"""Compilers, interpreters and package managers, in the forms that only show something.

What starts a provider of a terraform project (`validate`, `show`, `graph`) or prints its state is left out; so is what
reads the state with tofu, which may run a program to decrypt it.
"""

TABLE = r"""
python python3 python2 node nodejs deno bun ruby perl php java javac lua luajit swift scala kotlin kotlinc ghc ocaml
      R Rscript julia dart elixir rustc rustup gcc g++ cc c++ clang clang++ cmake make gmake ninja meson gem
      poetry pipenv rye conda mamba nvm fnm volta pyenv rbenv tsc esbuild biome oxlint mypy pyright
      bandit terraform-docs vagrant packer nomad consul vault minikube kind k3d k9s stern skaffold kustomize
      istioctl argocd flux linkerd protoc buf grpcurl redis-cli mongosh mongo sqlite ffmpeg ffprobe convert magick
      pandoc nginx httpd apache2 caddy traefik vim nvim vi nano emacs code zsh fish dash ksh nvcc strace ltrace gdb
      lldb valgrind perf cppcheck shellcheck shfmt hadolint yamllint markdownlint jsonlint golangci-lint staticcheck
      gofmt rustfmt mono hyperfine ssh scp rsync lua5.3 nix stack cabal opam nim crystal elm gleam sbcl guile racket
      doxygen gpg ctest pre-commit: needs --version; only --version; operands 0
python python3 python2 deno rustc rustup ghc poetry conda mamba mypy biome nano ssh strace ltrace hyperfine shellcheck
      rsync buf: needs --version -V; only --version -V; operands 0
java javac scala kotlin kotlinc swift ocaml sqlite ffmpeg ffprobe convert magick gdb nvcc
      : needs --version -version; only --version -version; operands 0; single
erl: needs -version; only -version; operands 0; single
node nodejs ruby php lua lua5.3 luajit tsc gcc g++ cc c++ clang clang++ make gmake
      : needs --version -v; only --version -v; operands 0
perl nginx httpd apache2: needs --version -v -V; only --version -v -V; operands 0
shellcheck hadolint yamllint: reads; not -o --output-file; not --config -c --rcfile -a --check-sourced
rustc: needs --version -V --explain; only --version -V --explain; operands 0; values --explain
sqlfluff: needs --version; only --version; operands 0
ruff: help; bare
  check|lint: reads; recursive; here; names *.py *.pyi *.ipynb;
      only --no-fix --no-cache -n --select --ignore --extend-select --line-length --preview
      --no-preview --statistics --quiet -q --verbose -v --exit-zero -e --target-version --output-format --diff
      --show-files --show-settings --isolated --force-exclude --no-unsafe-fixes --watch -w; values --select --ignore
      --extend-select --line-length --target-version --output-format
  format: reads; recursive; here; names *.py *.pyi *.ipynb;
      needs --check --diff; only --check --diff --no-cache -n --line-length --quiet -q --verbose -v --isolated
      --preview --target-version; values --line-length --target-version
  rule|linter|config|version|help
black: reads; recursive; here; names *.py *.pyi *.ipynb;
      needs --check --diff --version --help; only --check --diff --version --help -q -v -l --line-length -t
      --target-version --quiet --verbose --color --fast --preview -S -C; values -l --line-length -t --target-version
isort: reads; recursive; here; names *.py *.pyi *.ipynb;
      needs --check --check-only -c --diff --version --help; only --check --check-only --diff -c --version --help -q
      -v -l --line-length --profile --quiet --verbose --color --df; values -l --line-length --profile
dotnet: single
  --list-sdks|--list-runtimes: operands 0; only
zig: single
  version: operands 0; only
go: not -exec -toolexec -modfile -overlay -C; single
  version
  env: only -json -changed
  list: only -m -json -f -deps -test -e -find; values -f
  doc: only -all -c -short -src -u -cmd
cargo: help; not --config -Z -C; flags -v --verbose -q --quiet --locked --frozen --offline; values --color
  --version|-V|--list
  locate-project|read-manifest|verify-project|version|help: not
  tree|metadata|pkgid: needs --locked --frozen --no-deps; only --locked --frozen --no-deps --offline --format-version
      --depth -p --package --invert -i --edges -e --prefix --workspace --all-features --no-default-features --features
      --target --manifest-path --quiet -q --color --duplicates -d; values --format-version --depth -p --package -i
      --edges -e --prefix --features --target --manifest-path --color
  search|info: network
  owner --list: network
  c|check|clippy|doc: secret
rustup: help; flags -v --verbose -q --quiet
  show|which
  toolchain|component|target list
pip pip3: help; not --python --log --proxy --cache-dir --cert --client-cert --report -r --requirement
      ; flags -v --verbose -q --quiet --isolated --no-input --no-color --no-cache-dir --require-virtualenv
      --disable-pip-version-check --no-python-version-warning
      ; values --timeout --retries --trusted-host --exists-action --keyring-provider
  --version|-V
  list|freeze: not -o --outdated -u --uptodate -i --index-url --extra-index-url -f --find-links
  show|check|inspect|debug|version|help
  hash: reads
  config list|get|debug
  cache info|list|dir
  index versions: network
  search: network
uv: help; bare; not --config-file --directory --project --cache-dir --outdated --python-downloads-json-url
      ; flags -q --quiet -v --verbose -n --no-cache --offline --no-progress --no-config --native-tls; values --color
  --version|-V|version|help
  pip list|show|freeze|check|tree: network; not -p --python --target --prefix
  tree: secret
  python dir
  python list|find: only --all-versions --all-platforms --all-arches --only-installed --only-downloads --show-urls
      --output-format --managed-python --no-managed-python --system --no-project; values --output-format
      ; like (?:cpython|pypy|graalpy)?@?[<>=~!^]*\d[\d.,<>=~!*]*
  tool list|dir
  cache dir
  version: operands 0; only --short --output-format
npm: network; not --prefix -C --userconfig --globalconfig --script-shell --node-options --viewer --browser --cache
      --logs-dir --timing --git --editor --shell --onload-script --init-module --node-gyp --python --tmp
      ; flags -s --silent -q --quiet -d -g --global --json -l --long -a --all -p --parseable --no-color --no-audit
      --no-fund --no-progress --no-update-notifier --offline --workspaces --include-workspace-root; values --depth
      --loglevel --registry --workspace
  -v|--version: local; operands 0; only
  bin|root|prefix: local
  ls|list|ll|la|why|explain|query: local
  config list|ls|get: local
  get: local
  pkg get: local
  audit: not --fix; operands 0
  view|v|info|show: like (?:@[^/:]+/)?[^/:]+
  search|s|se|find|outdated|ping|stars|whoami|sbom
  fund: operands 0
  owner ls|list
  dist-tag ls|list
  access list|ls|get
  profile get
  team ls
  org ls
  token list
  cache local
  pack: secret
pnpm: only -r --recursive --depth --json --long --parseable -P --prod -D --dev --no-optional -g --global
      --only-projects --filter -F -w --workspace-root --help -h --location --compatible --audit-level; values --depth
      --filter -F --location --audit-level
  list|ls|ll|la|why|root|bin|help
  licenses list
  outdated: network
  audit: network; operands 0
  config get|list
  store path
brew: help; exact; flags -v --verbose -d --debug -q --quiet
  info|abv|desc|list|ls|deps|uses|outdated|missing|options|log|cat|livecheck|formula: network
      ; like (?![.~])(?!.*\.rb$)(?:[^/:]+|homebrew/[^/:]+/[^/:]+)
  search|-S|leaves|config|doctor|dr|formulae|casks|commands|tap-info: network
  --cache|--cellar|--prefix|--repo|--repository|--caskroom|--env
      : like (?![.~])(?!.*\.rb$)(?:[^/:]+|homebrew/[^/:]+/[^/:]+)
  --version|--config|--taps|help|shellenv
  -v: operands 0; only
  analytics state
  services list|info: like (?![.~])(?!.*\.rb$)(?:[^/:]+|homebrew/[^/:]+/[^/:]+)
  bundle check|list: network; not --file --global -g
  tap: operands 0
gem: not --config-file --install-dir; flags --norc --debug --backtrace
  list|env|environment|contents|which|dependency: not -r --remote -b --both -s --source
  search|info|outdated: network
conda mamba: flags -v --verbose --no-plugins; not --unsafe-channels
  list|info
  search: network
  env list
  config --show
poetry: not -C --directory -P --project; flags -q --quiet -v --verbose -n --no-interaction --ansi --no-ansi --no-cache
      --no-plugins
  check|about
  show: not -l --latest -o --outdated
  version: operands 0; only -s --short
  env info|list
rustfmt: reads; needs --check --version; only --check --version -l -q -v; values --edition --color
gofmt: reads; only -l -d -s -e
shfmt: reads; only -d -l -i -ci -bn -sr -kp -f --version; values -i; single
terraform: network; single; not -chdir -out -state-out -backup -generate-config-out
  version|-version|--version|-help|--help: local
  providers: operands 0
  state list
  workspace show: local
  workspace list
  metadata functions: local
  fmt: only -check -diff -recursive -no-color -list; local; secret
  get: secret
tofu: network; single; not -chdir -out -state-out -backup -generate-config-out
  version|-version|--version|-help|--help: local
  workspace show: local
  workspace list
  metadata functions: local
  fmt: only -check -diff -recursive -no-color -list; local; secret
  get: secret
packer: network; single
  --help|--version|version: local
  validate|inspect
  fmt: last; needs -check; only -check -diff -recursive
  plugins installed|required
cdk: only --version; operands 0
ansible-doc: only --help -h --version --list -l --json -j --type -t -F --list_files -s --snippet; values -t
ansible-config: only --help -h --version --format -f --only-changed --type -t; values -t
  list|view|dump|validate
  --help|-h|--version
ansible ansible-playbook ansible-galaxy ansible-vault ansible-pull ansible-console ansible-inventory ansible-lint
      ansible-test: needs --help -h --version; only --help -h --version; operands 0
networksetup: network; single; only -list* -get* -show* -print* -is* -help -version; needs -list* -get* -show*
      -print* -is* -help -version
"""
