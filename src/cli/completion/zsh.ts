import type { Answer } from './candidates.ts'

/** What zsh runs for a Tab. It quotes what it inserts; the words that it hands over have their quotes taken off. */
export const zshScript = `#compdef rsm
# Completion of rsm for zsh.
_rsm() {
  local -a answer done done_shown open open_shown about
  local current=$PREFIX line word shown
  [[ -z $compstate[quote] ]] && current=\${(Q)PREFIX}
  answer=("\${(@f)$(printf '%s\\0' "\${(@Q)words[2,CURRENT-1]}" "$current" | command rsm __complete zsh 2>/dev/null)}")
  for line in "\${(@)answer[2,-1]}"; do
    word=\${\${line#?}%%$'\\t'*} shown=\${line#*$'\\t'}
    if [[ $line = +* ]]; then
      done+=("$word") done_shown+=("$shown")
    else
      open+=("$word") open_shown+=("$shown")
    fi
  done
  [[ " $answer[1] " = *' about '* ]] && about=(-l)
  local -a how=($about -M 'm:{[:lower:][:upper:]}={[:upper:][:lower:]}' -V rsm)
  (( $#open )) && compadd "\${(@)how}" -S '' -d open_shown -a open
  (( $#done )) && compadd "\${(@)how}" -d done_shown -a done
  if [[ " $answer[1] " = *' files '* || " $answer[1] " = *' directories '* ]]; then
    [[ " $answer[1] " = *' cut '* ]] && compset -P '*='
    if [[ " $answer[1] " = *' directories '* ]]; then _files -/; else _files; fi
  fi
}
if [[ "\${funcstack[1]-}" = _rsm ]]; then
  _rsm "$@"
else
  (( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit -i -D }
  compdef _rsm rsm
fi
`

const mostAligned = 40

/** The answer as `zshScript` reads it: `+` or, where something has to follow, `-` before each word, and what is shown after a tab. */
export function renderZsh({ candidates, files }: Answer): string {
  const tells = candidates.some(({ about }) => about !== '')
  const width = Math.min(mostAligned, Math.max(0, ...candidates.map(({ shown }) => shown.length)))
  const options = [
    ...(tells ? ['about'] : []),
    ...(files === undefined ? [] : [files.only, ...(files.lead === '' ? [] : ['cut'])]),
  ]
  const lines = candidates.map(
    ({ word, shown, about, isOpen }) =>
      `${isOpen ? '-' : '+'}${word}\t${about === '' ? shown : `${shown.padEnd(width)}  -- ${about}`}`,
  )
  return [options.join(' '), ...lines, ''].join('\n')
}
