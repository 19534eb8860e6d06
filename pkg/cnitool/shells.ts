/**
 * For each shell the script that completes `cnitool`, given the hidden command that knows the answers. That
 * command gets the words up to the cursor and prints a line `word<TAB>description` for each candidate, then
 * `:4` when files are no candidates and `:0` when they are.
 */
export const completionScripts: Readonly<Record<string, (complete: string) => string>> = {
  bash: (complete) => `# bash completion for cnitool
_cnitool() {
    local cur=\${COMP_WORDS[COMP_CWORD]} line files=
    COMPREPLY=()
    while IFS= read -r line; do
        case $line in
            :0) files=yes ;;
            :*) ;;
            *) line=\${line%%$'\\t'*}; [[ $line == "$cur"* ]] && COMPREPLY+=("$line") ;;
        esac
    done < <("\${COMP_WORDS[0]/#\\~/$HOME}" ${complete} "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ -z $files ]] || compopt -o default
}
complete -F _cnitool cnitool
`,
  fish: (complete) => `# fish completion for cnitool
function __cnitool_complete
    set -l words (commandline -opc)
    set -e words[1]
    set -l found (cnitool ${complete} $words (commandline -ct) 2>/dev/null)
    string match -v -- ':*' $found
    contains -- :0 $found; and __fish_complete_path (commandline -ct)
end
complete -c cnitool -f -a '(__cnitool_complete)'
`,
  powershell: (complete) => `# PowerShell completion for cnitool
Register-ArgumentCompleter -Native -CommandName cnitool -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @($commandAst.CommandElements | Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.Extent.Text })
    & cnitool ${complete} @words "$wordToComplete" 2>$null | Where-Object { $_ -notmatch '^:' } | ForEach-Object {
        $name, $about = $_ -split "\`t", 2
        if (-not $about) { $about = $name }
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
    }
}
`,
  zsh: (complete) => `#compdef cnitool
# zsh completion for cnitool
_cnitool() {
    local line files=
    local -a found
    for line in "\${(@f)$(\${words[1]} ${complete} "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        case $line in
            :0) files=yes ;;
            :*) ;;
            ?*) line=\${line//:/\\\\:}; found+=("\${line/$'\\t'/:}") ;;
        esac
    done
    (( $#found )) && _describe cnitool found
    [[ -z $files ]] || _files
}
if [[ $funcstack[1] == _cnitool ]]; then _cnitool "$@"; else compdef _cnitool cnitool; fi
`,
};
