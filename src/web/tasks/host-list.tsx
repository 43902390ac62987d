import { useState } from 'preact/hooks'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showDuration } from '../../cli/text/time.ts'
import type { TaskSummary } from '../../core/protocol/http/tasks.ts'
import type { GateStatus } from '../../core/tasks/gates.ts'
import { type ResultStatus, runsScript, type TaskResult } from '../../core/tasks/task.ts'
import { Badge, LongName } from '../parts/shown.tsx'
import { FetchedFile, HostCarried, HostPhases } from './host-parts.tsx'
import { endText, hasGates } from './task-words.ts'

/** Hosts listed at first, and added on demand: each is redrawn while the task runs. */
const hostsStep = 200
/** Hosts above which the list has a search. */
const leastSearched = 12

/** A group of hosts to filter by; `isBad`: they need attention. */
interface Facet {
  readonly name: string
  readonly isBad?: boolean
  readonly fits: (result: TaskResult) => boolean
}

type Copying = Pick<TaskSummary, 'copy'>

interface HostListProps {
  task: TaskSummary
  results: readonly TaskResult[]
  /** Transferred bytes of each host's file, by host ID. */
  carried: ReadonlyMap<number, number>
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

/** Sorts hosts that did not succeed first, led by those whose rollback failed. */
function rank({ status, rollback }: TaskResult): number {
  if (rollback !== null && rollback.status !== 'SUCCESS') return 0
  if (status === 'SUCCESS') return 4
  if (status === 'PENDING' || status === 'SKIPPED') return 3
  return status === 'RUNNING' ? 2 : 1
}

/** Non-empty groups with their counts, as filters. */
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

/** Groups for a kind of task, in addition to the status. */
function facetsOf(task: Pick<TaskSummary, 'copy' | 'fetch' | 'verify' | 'rollback'>): readonly Facet[] {
  if (hasGates(task)) return gateFacets
  if (task.fetch !== null) return fetchFacets
  if (task.copy === null) return []
  return isDryRun(task) ? dryFacets : copyFacets
}

function detailText(task: TaskSummary, result: TaskResult): string {
  const hasPhases = result.verify !== null || result.rollback !== null
  // The exit code of a file transfer is not a script's.
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

/** Effect of a copy or dry run on a host; empty if unknown, and for other tasks. */
function changeText(task: Copying, { changed }: Pick<TaskResult, 'changed'>): string {
  if (task.copy === null || changed === null) return ''
  if (!changed) return 'unchanged'
  return isDryRun(task) ? 'would change' : 'changed'
}

const isDryRun = ({ copy }: Copying): boolean => copy?.check !== undefined

const isFailed = (status: GateStatus | undefined) => status === 'FAILED' || status === 'TIMEOUT'
