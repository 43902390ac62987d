import type { Answer, Candidate } from './candidates.ts'

/** Completion function of bash. readline replaces only its own last word (`$2`), which it splits at `:`, `=` and `@`. */
export const bashScript = `# Completion of rsm for bash 4.4 and later.
_rsm() {
  local -a answer
  COMPREPLY=()
  mapfile -t answer < <(printf '%s\\0' "\${COMP_LINE:0:COMP_POINT}" "$2" "$COMP_TYPE" | command rsm __complete bash 2>/dev/null)
  case " \${answer[0]-} " in *' nospace '*) compopt -o nospace ;; esac
  case " \${answer[0]-} " in *' nosort '*) compopt -o nosort ;; esac
  case " \${answer[0]-} " in *' files '*) compopt -o default ;; esac
  case " \${answer[0]-} " in *' directories '*) compopt -o dirnames ;; esac
  COMPREPLY=("\${answer[@]:1}")
}
complete -F _rsm rsm
`

/** Values of COMP_TYPE that list candidates (`?`, `!`, `@`) instead of cycling through them. */
const listingTypes = new Set(['63', '33', '64'])

/** The part of a typed word that readline keeps, unquoted. */
function untouched(raw: string, replaced: string) {
  const kept = raw.endsWith(replaced) ? raw.slice(0, raw.length - replaced.length) : ''
  const { current, quote } = readShellLine(kept)
  return { text: current, quote }
}

function typedInBash({ word }: Candidate, raw: string, replaced: string): string | undefined {
  const { text, quote } = untouched(raw, replaced)
  return quoted(word.slice(text.length), quote)
}

/** Formats the answer for `bashScript`: options of `compopt`, then a line per candidate. */
export function renderBash(answer: Answer, raw: string, replaced: string, compType: string): string {
  const { candidates, files } = answer
  const only = candidates.length === 1 ? candidates[0] : undefined
  const options = [
    ...(only?.isOpen === true ? ['nospace'] : []),
    ...(answer.isOrdered === true ? ['nosort'] : []),
    ...(files === undefined ? [] : [files.only]),
  ]
  const isDescribed = answer.isOfIds === true && only === undefined && listingTypes.has(compType)
  const lines = candidates.flatMap((candidate) => {
    const text = typedInBash(candidate, raw, replaced)
    if (text === undefined) return []
    return [isDescribed && candidate.about !== '' ? `${text}  (${candidate.about})` : text]
  })
  return [options.join(' '), ...lines, ''].join('\n')
}

/** Completion function of fish, which quotes insertions itself and adds no space after `:` and `=`. */
export const fishScript = `# Completion of rsm for fish 3 and later.
function __rsm_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer (printf '%s\\0' $words "$current" | command rsm __complete fish 2>/dev/null)
    set -q answer[1]; or return
    set -q answer[2]; and printf '%s\\n' $answer[2..-1]
    set -l lead
    set -l path "$current"
    if string match -q '* cut' -- "$answer[1]"
        set lead (string match -r -- '^.*=' "$current")
        set path (string replace -r -- '^.*=' '' "$current")
    end
    switch (string replace ' cut' '' -- "$answer[1]")
        case files
            for file in (__fish_complete_path "$path")
                printf '%s%s\\n' "$lead" $file
            end
        case directories
            for directory in (__fish_complete_directories "$path")
                printf '%s%s\\n' "$lead" $directory
            end
    end
end
complete -c rsm -e
complete -c rsm -f -k -a '(__rsm_complete)'
`

/** Formats the answer for `fishScript`: the kind of file names to add, then each word with a tab and its description. */
export function renderFish({ candidates, files }: Answer): string {
  const lines = candidates.map(({ word, about }) => (about === '' ? word : `${word}\t${about}`))
  const names = files === undefined ? '' : files.lead === '' ? files.only : `${files.only} cut`
  return [names, ...lines, ''].join('\n')
}

/** Completion function of zsh, which quotes insertions itself and passes unquoted words. */
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

/** Formats the answer for `zshScript`: `-` before an incomplete word, `+` before others, then a tab and the text to show. */
export function renderZsh({ candidates, files }: Answer): string {
  const isDescribed = candidates.some(({ about }) => about !== '')
  const width = Math.min(mostAligned, Math.max(0, ...candidates.map(({ shown }) => shown.length)))
  const options = [
    ...(isDescribed ? ['about'] : []),
    ...(files === undefined ? [] : [files.only, ...(files.lead === '' ? [] : ['cut'])]),
  ]
  const lines = candidates.map(
    ({ word, shown, about, isOpen }) =>
      `${isOpen ? '-' : '+'}${word}\t${about === '' ? shown : `${shown.padEnd(width)}  -- ${about}`}`,
  )
  return [options.join(' '), ...lines, ''].join('\n')
}

type Quote = '' | "'" | '"'

/** A command line up to the cursor, split like a shell does, without expansion. */
interface ShellLine {
  /** Unquoted words before the one under the cursor. */
  readonly words: readonly string[]
  readonly current: string
  readonly raw: string
  readonly quote: Quote
  /** Whether the word contains an expansion such as `$HOME`, whose value is unknown here. */
  readonly isExpanded: boolean
  /** Whether the word is the file of a `<` or `>`. */
  readonly isRedirection: boolean
}

/** Reads a line of bash, zsh or fish up to the cursor, starting after the last `;`, `|` or `&`. */
export function readShellLine(line: string): ShellLine {
  let words: string[] = []
  let start = 0
  let current = ''
  let quote: Quote = ''
  let isExpanded = false
  let isRedirection = false
  const end = (at: number) => {
    if (at > start && !isRedirection) words.push(current)
    if (at > start) isRedirection = false
    current = ''
    isExpanded = false
    start = at + 1
  }
  for (let at = 0; at < line.length; at++) {
    const sign = line.charAt(at)
    if (quote === "'") {
      if (sign === "'") quote = ''
      else current += sign
    } else if (sign === '\\' && (quote === '' || '$`"\\\n'.includes(line.charAt(at + 1)))) {
      current += line.charAt(++at)
    } else if (quote === '"') {
      if (sign === '"') quote = ''
      else {
        current += sign
        if (sign === '$' || sign === '`') isExpanded = true
      }
    } else if (sign === "'" || sign === '"') quote = sign
    else if (/\s/.test(sign)) end(at)
    else if (sign === '<' || sign === '>') {
      // A file descriptor, as in `2>`.
      if (/^\d+$/.test(line.slice(start, at))) start = at
      end(at)
      isRedirection = true
    } else if (sign === '&' && isRedirection && at === start) start = at + 1
    else if (';|&'.includes(sign)) {
      end(at)
      words = []
    } else {
      current += sign
      if (sign === '$' || sign === '`') isExpanded = true
    }
  }
  return { words, current, raw: line.slice(start), quote, isExpanded, isRedirection }
}

const plain = /^[\p{L}\p{N}_@%+=:,./-]$/u

/** Escapes text within an open quote; undefined if that is impossible. */
export function quoted(text: string, quote: Quote): string | undefined {
  if (quote === "'") return text.replaceAll("'", "'\\''")
  // Interactive shells expand `!` from the history, and would keep a backslash before it.
  if (quote === '"') return text.includes('!') ? undefined : text.replace(/[$`"\\]/g, '\\$&')
  return Array.from(text, (sign) => (plain.test(sign) ? sign : `\\${sign}`)).join('')
}
