import type { Answer, Candidate } from './candidates.ts'
import { quoted, readShellLine } from './shell-words.ts'

/** What bash runs for a Tab. readline replaces the end of the line that it calls the word (`$2`): what it cuts at `:`, `=` and `@`. */
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

/** A list is being shown (`?`, `!`, `@` of COMP_TYPE), not a menu gone through. */
const listing = new Set(['63', '33', '64'])

/** The part of a typed word that readline leaves alone, without its quotes. */
function untouched(raw: string, replaced: string) {
  const kept = raw.endsWith(replaced) ? raw.slice(0, raw.length - replaced.length) : ''
  const { current, quote } = readShellLine(kept)
  return { text: current, quote }
}

function typed({ word }: Candidate, raw: string, replaced: string): string | undefined {
  const { text, quote } = untouched(raw, replaced)
  return quoted(word.slice(text.length), quote)
}

/** The answer as `bashScript` reads it: options of `compopt`, then a line for each candidate. */
export function renderBash(answer: Answer, raw: string, replaced: string, compType: string): string {
  const { candidates, files } = answer
  const only = candidates.length === 1 ? candidates[0] : undefined
  const options = [
    ...(only?.isOpen === true ? ['nospace'] : []),
    ...(answer.isOrdered === true ? ['nosort'] : []),
    ...(files === undefined ? [] : [files.only]),
  ]
  const tells = answer.isOfIds === true && only === undefined && listing.has(compType)
  const lines = candidates.flatMap((candidate) => {
    const text = typed(candidate, raw, replaced)
    if (text === undefined) return []
    return [tells && candidate.about !== '' ? `${text}  (${candidate.about})` : text]
  })
  return [options.join(' '), ...lines, ''].join('\n')
}
