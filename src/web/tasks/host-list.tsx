import { useState } from 'preact/hooks'
import type { ResultStatus, TaskResult } from '../../core/task/task.ts'
import { sanitizeLine } from '../../ui/text/sanitize.ts'
import { showDuration } from '../../ui/text/time.ts'
import { Badge } from '../parts/badge.tsx'
import { LongName } from '../parts/long-name.tsx'
import { endSaid } from './task-words.ts'

/** Hosts that are listed at first, and by which more are: each is drawn anew while the task runs. */
const hostsStep = 200
/** A shorter list is read, not searched. */
const leastSearched = 12

/** Those that did not succeed come first. */
const rank = ({ status }: TaskResult) =>
  status === 'SUCCESS' ? 3 : status === 'PENDING' || status === 'SKIPPED' ? 2 : status === 'RUNNING' ? 1 : 0

interface HostListProps {
  results: readonly TaskResult[]
  /** The host that is chosen; undefined: all of them. */
  hostId: number | undefined
  onChoose: (hostId: number | undefined) => void
}

export function HostList({ results, hostId, onChoose }: HostListProps) {
  const [search, setSearch] = useState('')
  const [status, setStatus] = useState<ResultStatus | ''>('')
  const [most, setMost] = useState(hostsStep)
  const statuses = [...new Set(results.map((result) => result.status))].sort()
  const found = results
    .filter(
      (result) =>
        (status === '' || result.status === status) &&
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
              <small>
                {[
                  sanitizeLine(endSaid(result)),
                  result.duration === null ? '' : showDuration(result.duration),
                ]
                  .filter(Boolean)
                  .join(' · ')}
              </small>
            </button>
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
