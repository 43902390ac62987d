import { useEffect, useState } from 'preact/hooks'
import { showTime } from '../../cli/text/time.ts'
import { type ShownStatus, shownStatus, shownStatuses } from '../../core/hosts/host-status.ts'
import { useTitle } from '../parts/browser.ts'
import { Fault } from '../parts/shown.tsx'
import { go } from '../route.ts'
import { allowed } from '../session.ts'
import { useStore } from '../store.ts'
import { chosenHosts, HostRow } from './host-row.tsx'
import { followHosts, type LiveHosts, liveHosts } from './live-hosts.ts'
import { matches } from './search.ts'

/** Milliseconds between redraws of the times of silence. */
const tick = 5_000

/** Rows shown; larger fleets need the search. */
const mostRows = 300

const freshnessText: Record<LiveHosts['freshness'], string> = {
  loading: 'Loading …',
  live: 'Live',
  polled: 'Every 10 s',
  lost: 'Trying again …',
}

export function HostsPage() {
  useTitle('Hosts')
  const { hosts, freshness, at, fault } = useStore(liveHosts)
  const chosen = useStore(chosenHosts)
  const [search, setSearch] = useState('')
  const [status, setStatus] = useState<ShownStatus | ''>('')
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), tick)
    return () => clearInterval(timer)
  }, [])
  useEffect(() => {
    const controller = new AbortController()
    void followHosts(controller.signal)
    return () => controller.abort()
  }, [])
  const searched = hosts.filter((host) => matches(host, search))
  const ofStatus = (wanted: ShownStatus | '') =>
    wanted === '' ? searched : searched.filter((host) => shownStatus(host) === wanted)
  const count = (wanted: ShownStatus | '') => ofStatus(wanted).length
  const found = ofStatus(status)
  const isAllChosen = found.length > 0 && found.every((host) => chosen.has(host.id))
  const chooseAll = (isOn: boolean) =>
    chosenHosts.update((now) => {
      const next = new Set(now)
      for (const { id } of found) {
        if (isOn) next.add(id)
        else next.delete(id)
      }
      return next
    })
  return (
    <section class="page">
      <div class="heading">
        <h1>Hosts</h1>
        <span class={`freshness ${freshness}`} role="status">
          {freshnessText[freshness]}
        </span>
      </div>
      <div class="bar" role="search">
        <input
          type="search"
          aria-label="Search hosts"
          placeholder="Search name, address or tag   /"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <div class="choice" role="group" aria-label="Status">
          {(['', ...shownStatuses] as const).map((one) => (
            <button key={one} type="button" aria-pressed={status === one} onClick={() => setStatus(one)}>
              {[one === '' ? 'All' : one.toLowerCase(), at === null ? '' : count(one)].join(' ')}
            </button>
          ))}
        </div>
        {allowed('execute') && (
          <button type="button" class="primary" disabled={chosen.size === 0} onClick={() => go('run')}>
            {chosen.size === 0 ? 'Run on …' : `Run on ${chosen.size}`}
          </button>
        )}
      </div>
      <Fault
        text={
          fault === '' || at === null
            ? fault
            : `${fault}. Last update: ${showTime(new Date(at).toISOString(), false)}.`
        }
      />
      {found.length > 0 && (
        <table class="rows hosts">
          <thead>
            <tr>
              {allowed('execute') && (
                <th class="w-check">
                  <input
                    type="checkbox"
                    aria-label="Choose all shown"
                    checked={isAllChosen}
                    onChange={(event) => chooseAll(event.currentTarget.checked)}
                  />
                </th>
              )}
              <th>Host</th>
              <th class="w-status">Status</th>
              <th class="w-system wide">System</th>
              <th class="w-tags">Tags</th>
              {allowed('execute') && <th class="w-action" aria-label="Actions" />}
            </tr>
          </thead>
          <tbody>
            {found.slice(0, mostRows).map((host) => (
              <HostRow key={host.id} host={host} isChosen={chosen.has(host.id)} now={now} />
            ))}
          </tbody>
        </table>
      )}
      {found.length > mostRows && (
        <p class="hint">{`${found.length - mostRows} more: narrow the search to see them.`}</p>
      )}
      {found.length === 0 && at !== null && (
        <p class="empty">
          {freshness === 'lost' && hosts.length === 0 ? (
            'There were no hosts at the last update.'
          ) : hosts.length === 0 ? (
            <>
              No hosts yet. <code>rsm hosts join</code> prints the command that enrolls one.
            </>
          ) : (
            'No host matches.'
          )}
        </p>
      )}
    </section>
  )
}
