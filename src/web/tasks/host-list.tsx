import { useState } from 'preact/hooks'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showDuration } from '../../cli/text/time.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { GateStatus } from '../../core/tasks/gates.ts'
import { type ResultStatus, runsScript, type TaskResult } from '../../core/tasks/task.ts'
import { Badge, LongName } from '../parts/shown.tsx'
import { FetchedFile, HostCarried } from './fetched-file.tsx'
import { HostPhases } from './host-phases.tsx'
import { endText, hasGates } from './task-words.ts'

/** Hosts that are listed at first, and by which more are: each is redrawn while the task runs. */
const hostsStep = 200
/** A shorter list is read, not searched. */
const leastSearched = 12

/** A kind of hosts that people look for; `isBad`: somebody has to look after them. */
interface Facet {
  readonly name: string
  readonly isBad?: boolean
  readonly fits: (result: TaskResult) => boolean
}

type Copying = Pick<TaskSummary, 'copy'>

interface HostListProps {
  task: TaskSummary
  results: readonly TaskResult[]
  /** Of hosts that get or send a file: so many bytes of it have passed. */
  carried: ReadonlyMap<number, number>
  /** The host that is chosen; undefined: all of them. */
  hostId: number | undefined
  onChoose: (hostId: number | undefined) => void
  onFault: (fault: string) => void
}

interface FacetsProps {
  facets: readonly Facet[]
  results: readonly TaskResult[]
  chosen: Facet | undefined
  onChoose: (facet: Facet | undefined) => void
}

const gateFacets: readonly Facet[] = [
  { name: 'verifying', fits: ({ phase }) => phase === 'VERIFY' },
  { name: 'rolling back', fits: ({ phase }) => phase === 'ROLLBACK' },
  { name: 'verify failed', isBad: true, fits: ({ verify }) => isFailed(verify?.status) },
  { name: 'rollback failed', isBad: true, fits: ({ rollback }) => isFailed(rollback?.status) },
  { name: 'rolled back', fits: ({ rollback }) => rollback?.status === 'SUCCESS' },
]

const copyFacets: readonly Facet[] = [
  { name: 'changed', fits: ({ changed }) => changed === true },
  { name: 'unchanged', fits: ({ changed }) => changed === false },
]
const dryFacets: readonly Facet[] = [
  { name: 'would change', fits: ({ changed }) => changed === true },
  { name: 'unchanged', fits: ({ changed }) => changed === false },
]

const fetchFacets: readonly Facet[] = [{ name: 'fetched', fits: ({ status }) => status === 'SUCCESS' }]

export function HostList({ task, results, carried, hostId, onChoose, onFault }: HostListProps) {
  const [search, setSearch] = useState('')
  const [status, setStatus] = useState<ResultStatus | ''>('')
  const [facet, setFacet] = useState<Facet | undefined>()
  const [most, setMost] = useState(hostsStep)
  const statuses = [...new Set(results.map((result) => result.status))].sort()
  const found = results
    .filter(
      (result) =>
        (status === '' || result.status === status) &&
        (facet === undefined || facet.fits(result)) &&
        result.hostname.toLowerCase().includes(search.toLowerCase()),
    )
    .sort((one, other) => rank(one) - rank(other))
  const rest = found.length - most
  return (
    <div class="host-list">
      {results.length > leastSearched && (
        <div class="bar">
          <input
            type="search"
            aria-label="Search hosts"
            placeholder="Host"
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
          <select
            aria-label="Status of hosts"
            onChange={(event) => setStatus(statuses.find((one) => one === event.currentTarget.value) ?? '')}
          >
            <option value="">Any status</option>
            {statuses.map((one) => (
              <option key={one} value={one} selected={one === status}>
                {one.toLowerCase()}
              </option>
            ))}
          </select>
        </div>
      )}
      <Facets facets={facetsOf(task)} results={results} chosen={facet} onChoose={setFacet} />
      <ul class="results" aria-label="Hosts">
        <li>
          <button type="button" aria-pressed={hostId === undefined} onClick={() => onChoose(undefined)}>
            {results.length === 1 ? '1 host' : `All ${results.length} hosts`}
          </button>
        </li>
        {found.slice(0, most).map((result) => (
          <li key={result.hostId}>
            <button
              type="button"
              aria-pressed={hostId === result.hostId}
              onClick={() => onChoose(result.hostId)}
            >
              <span class="host">
                <LongName text={result.hostname} />
              </span>
              <Badge state={result.status} />
              <HostPhases task={task} result={result} isShort />
              <HostCarried task={task} result={result} bytes={carried.get(result.hostId)} />
              <small>{detailText(task, result)}</small>
            </button>
            <FetchedFile task={task} result={result} onFault={onFault} />
          </li>
        ))}
        {rest > 0 && (
          <li class="more">
            <button type="button" onClick={() => setMost((now) => now + hostsStep)}>
              {`Show ${Math.min(rest, hostsStep)} more of ${rest}`}
            </button>
          </li>
        )}
        {found.length === 0 && <li class="hint">No host matches.</li>}
      </ul>
    </div>
  )
}

/** Those that did not succeed come first, before them those where not even what undoes it did. */
function rank({ status, rollback }: TaskResult): number {
  if (rollback !== null && rollback.status !== 'SUCCESS') return 0
  if (status === 'SUCCESS') return 4
  if (status === 'PENDING' || status === 'SKIPPED') return 3
  return status === 'RUNNING' ? 2 : 1
}

/** Kinds of hosts that there are, with their numbers; one narrows the list. */
function Facets({ facets, results, chosen, onChoose }: FacetsProps) {
  const counts = facets.map((facet) => ({ facet, count: results.filter(facet.fits).length }))
  const visible = counts.filter(({ facet, count }) => count > 0 || facet === chosen)
  if (visible.length === 0) return null
  return (
    <div class="facets" role="group" aria-label="Kinds of hosts">
      {visible.map(({ facet, count }) => (
        <button
          key={facet.name}
          type="button"
          class={facet.isBad === true ? 'bad' : ''}
          aria-pressed={facet === chosen}
          onClick={() => onChoose(facet === chosen ? undefined : facet)}
        >
          {`${facet.name} ${count}`}
        </button>
      ))}
    </div>
  )
}

/** By which hosts of a task are told apart beside their status. */
function facetsOf(task: Pick<TaskSummary, 'copy' | 'fetch' | 'verify' | 'rollback'>): readonly Facet[] {
  if (hasGates(task)) return gateFacets
  if (task.fetch !== null) return fetchFacets
  if (task.copy === null) return []
  return isDryRun(task) ? dryFacets : copyFacets
}

/** Facts of a result beside its status and its phases. */
function detailText(task: TaskSummary, result: TaskResult): string {
  const hasPhases = result.verify !== null || result.rollback !== null
  // Nothing of a file ends with a code that somebody has chosen.
  const isGood = !runsScript(task.type) && result.status === 'SUCCESS'
  const how = hasPhases || isGood ? '' : endText(result)
  return [
    changeText(task, result),
    sanitizeLine(how),
    result.duration === null ? '' : showDuration(result.duration),
  ]
    .filter(Boolean)
    .join(' · ')
}

/** What a copy did to a host, or would have; empty where nobody knows, and of other tasks. */
function changeText(task: Copying, { changed }: Pick<TaskResult, 'changed'>): string {
  if (task.copy === null || changed === null) return ''
  if (!changed) return 'unchanged'
  return isDryRun(task) ? 'would change' : 'changed'
}

/** Whether a copy writes nothing. */
const isDryRun = ({ copy }: Copying): boolean => copy?.check !== undefined

const isFailed = (status: GateStatus | undefined) => status === 'FAILED' || status === 'TIMEOUT'
