"""The file types people ask for, for searches without ripgrep; ripgrep knows many more."""

from callwright.core.errors import InvalidArguments
from callwright.system.query import Globs

_TYPES = {
    "c": "*.[chH] *.h.in *.cats",
    "cpp": "*.[ChH] *.cc *.[ch]pp *.[ch]xx *.hh *.inl",
    "cs": "*.cs",
    "css": "*.css *.scss",
    "go": "*.go",
    "html": "*.html *.htm *.ejs",
    "java": "*.java *.jsp *.jspx *.properties",
    "js": "*.js *.jsx *.vue *.cjs *.mjs",
    "json": "*.json *.sarif composer.lock",
    "kotlin": "*.kt *.kts",
    "lua": "*.lua",
    "make": "[Gg][Nn][Uu]makefile [Mm]akefile *.mk *.mak",
    "markdown": "*.markdown *.md *.mdown *.mdwn *.mkd *.mkdn *.mdx",
    "php": "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.pht *.phtml",
    "py": "*.py *.pyi",
    "ruby": "*.rb *.gemspec .irbrc Gemfile Rakefile config.ru",
    "rust": "*.rs",
    "sh": "*.sh *.bash *.zsh *.ksh *.csh *.tcsh .bashrc .profile .zshrc",
    "sql": "*.sql *.psql",
    "swift": "*.swift",
    "toml": "*.toml Cargo.lock",
    "ts": "*.ts *.tsx *.cts *.mts",
    "txt": "*.txt",
    "xml": "*.xml *.xml.dist *.dtd *.xsl *.xslt *.xsd *.xjb *.rng *.sch *.xhtml",
    "yaml": "*.yaml *.yml",
}
_ALIASES = {"md": "markdown", "python": "py", "rb": "ruby", "typescript": "ts"}


def file_type(name: str) -> Globs:
    """Return the globs of a type; raises `InvalidArguments` for one that only ripgrep knows."""
    known = _TYPES.get(_ALIASES.get(name, name))
    if known is None:
        offered = ", ".join(sorted(_TYPES))
        raise InvalidArguments(f"type {name!r} is not known without ripgrep; known are {offered}; use glob instead")
    return Globs.parse(known)
