import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { comparedText, type Group, groupsOf, titleOf } from '../../cli/output/equal-output.ts'
import { PhaseHeads } from '../../cli/output/lines.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import type { LogEntry } from '../../core/protocol/http/logs.ts'
import { shortened } from '../../core/text/pieces.ts'
import { pause } from '../../net/backoff.ts'
import { errorText } from '../api.ts'
import { Fault, LongName } from '../parts/shown.tsx'
import type { OutputLine } from './output-lines.ts'
import { logPages } from './task-log.ts'

/** Pixels from the end within which the view follows new output. */
const atEnd = 40
/** Bounds of the width of the host column, in characters. */
const [narrowest, widest] = [6, 28]

const mostMarks = 1_000

interface OutputPaneProps {
  lines: readonly OutputLine[]
  empty: string
  isLater: boolean
  /** Whether all lines belong to the chosen host. */
  isOne: boolean
  isDiff: boolean
  search: string
}

/** Output lines with their hosts. Follows the end until the user scrolls back. */
export function OutputPane({ lines, empty, isLater, isOne, isDiff, search }: OutputPaneProps) {
  const pane = useRef<HTMLDivElement>(null)
  const follows = useRef(true)
  useLayoutEffect(() => {
    if (follows.current && pane.current) pane.current.scrollTop = pane.current.scrollHeight
  }, [lines])
  const hasPhases = lines.some(({ phase }) => phase !== undefined)
  const longest = lines.reduce((most, { hostname }) => Math.max(most, hostname.length), narrowest)
  return (
    <div
      ref={pane}
      class={isOne ? 'output one' : 'output'}
      role="log"
      aria-label="Output"
      tabIndex={0}
      style={{ '--host': `${Math.min(longest, widest)}ch` }}
      onScroll={({ currentTarget: at }) => {
        follows.current = at.scrollHeight - at.scrollTop - at.clientHeight < atEnd
      }}
    >
      {isLater && <p class="hint">Earlier output is not shown here</p>}
      {lines.map(({ key, hostname, stream, phase, text }) => (
        <div key={key} class={isDiff ? `${stream} ${diffClass(text)}` : stream}>
          <span class="host" title={hostname}>
            {sanitizeLine(hostname)}
          </span>
          {hasPhases && <span class="phase">{phase?.toLowerCase() ?? 'script'}</span>}
          <span class="text">
            <Marked text={text} search={search} />
          </span>
        </div>
      ))}
      {lines.length === 0 && <p class="hint">{empty}</p>}
    </div>
  )
}

/** A text with its search matches marked; ignores case. */
function Marked({ text, search }: { text: string; search: string }) {
  const wanted = search.toLowerCase()
  // Offsets match only if lower case has the same length.
  const lower = text.toLowerCase()
  if (wanted === '' || lower.length !== text.length) return text
  const parts = []
  let from = 0
  for (let at = lower.indexOf(wanted); at !== -1 && parts.length < 2 * mostMarks; ) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>)
    from = at + wanted.length
    at = lower.indexOf(wanted, from)
  }
  return [...parts, text.slice(from)]
}

/** CSS class of a line of a unified diff; empty for other lines. */
function diffClass(line: string): string {
  if (/^(?:---|\+\+\+) /.test(line)) return 'diff-file'
  if (line.startsWith('@@ ')) return 'diff-place'
  if (line.startsWith('+')) return 'diff-new'
  return line.startsWith('-') ? 'diff-old' : ''
}

/** Characters kept for folding, over all hosts, because a browser cannot hold unlimited output. */
const mostKept = 64 * 1024 * 1024

/** Output of each host from the start, for finding equal ones. */
class HostOutputs {
  readonly #pieces = new Map<string, Record<LogEntry['stream'], string[]>>()
  readonly #heads = new PhaseHeads()
  #size = 0

  get isSpent(): boolean {
    return this.#size > mostKept
  }

  push(entries: readonly LogEntry[]): void {
    for (const entry of entries) {
      const { hostname, stream } = entry
      const data = this.#heads.marked(`${hostname} ${stream}`, entry)
      const pieces = this.#pieces.get(hostname) ?? { stdout: [], stderr: [] }
      this.#pieces.set(hostname, pieces)
      pieces[stream].push(data)
      this.#size += data.length
    }
    if (this.isSpent) this.#pieces.clear()
  }

  /** Groups of hosts with equal output, largest first; `hostnames` includes silent hosts. */
  groups(hostnames: readonly string[]): Group[] {
    return groupsOf(hostnames.map((hostname) => [this.#outputOf(hostname), [hostname]]))
  }

  /** Stderr after stdout, because the order of their pieces is random. */
  #outputOf(hostname: string): string {
    const { stdout = [], stderr = [] } = this.#pieces.get(hostname) ?? {}
    const [first, then] = [stdout, stderr].map((pieces) => comparedText(pieces.join('')))
    return [first, then].filter(Boolean).join(first?.endsWith('\n') ? '' : '\n')
  }
}

/** Milliseconds between comparisons while the task runs. */
const refreshInterval = 2_000
/** Characters shown of an output, and number of outputs. */
const longestShown = 100_000
const mostGroups = 200

function OutputText({
  text,
  search,
  isDiff,
}: { text: string } & Pick<EqualOutputProps, 'search' | 'isDiff'>) {
  if (!isDiff) return <Marked text={text} search={search} />
  return text.split(/(?<=\n)/).map((line, at) => (
    <span key={at} class={diffClass(line)}>
      <Marked text={line} search={search} />
    </span>
  ))
}

interface EqualOutputProps {
  taskId: string
  hostnames: readonly string[]
  isRunning: boolean
  search: string
  isDiff: boolean
}

export function EqualOutput({ taskId, hostnames, isRunning, search, isDiff }: EqualOutputProps) {
  const [compared, setCompared] = useState<{ outputs: HostOutputs } | undefined>()
  const [fault, setFault] = useState('')
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const outputs = new HostOutputs()
    let after = 0
    async function follow(): Promise<void> {
      do {
        for await (const { entries, next } of logPages(taskId, { after, signal })) {
          outputs.push(entries)
          after = next
          if (outputs.isSpent) break
        }
        setCompared({ outputs })
        if (!isRunning) return
        await pause(refreshInterval, signal)
      } while (!signal.aborted && !outputs.isSpent)
    }
    follow().catch((error: unknown) => {
      if (!signal.aborted) setFault(errorText(error))
    })
    return () => controller.abort()
  }, [taskId, isRunning])

  const groups = useMemo(() => compared?.outputs.groups(hostnames) ?? [], [compared, hostnames.length])
  const found = search === '' ? groups : groups.filter((group) => holds(group, search))
  return (
    <div class="output equal" role="region" aria-label="Equal output" tabIndex={0}>
      <Fault text={fault} />
      {compared === undefined && fault === '' && <p class="hint">Reading …</p>}
      {compared?.outputs.isSpent === true && (
        <p class="hint">Too much output to compare in a browser: use rsm logs --output grouped</p>
      )}
      {compared?.outputs.isSpent === false &&
        found.slice(0, mostGroups).map((group) => (
          <section key={group.hostnames[0]}>
            <h2>
              <LongName text={titleOf(group)} />
            </h2>
            {group.shown === '' ? (
              <p class="hint">No output</p>
            ) : (
              <pre>
                <OutputText
                  text={shortened(group.shown, longestShown, ' …')}
                  search={search}
                  isDiff={isDiff}
                />
              </pre>
            )}
          </section>
        ))}
      {found.length > mostGroups && <p class="hint">{`${found.length - mostGroups} more outputs differ`}</p>}
      {compared !== undefined && search !== '' && found.length === 0 && (
        <p class="hint">No output contains this.</p>
      )}
    </div>
  )
}

const holds = ({ shown }: Group, search: string) => shown.toLowerCase().includes(search.toLowerCase())
