import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { reasonNow, shownStatus } from '../../core/hosts/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { Badge, LongName } from '../parts/shown.tsx'
import { allowed, session } from '../session.ts'
import { createStore } from '../store.ts'
import { openTerminal } from '../terminals/open-terminals.ts'

export const chosenHosts = createStore<ReadonlySet<number>>(new Set())
session.subscribe(() => {
  // The next user starts without chosen hosts.
  if (session.get() === undefined) chosenHosts.set(new Set())
})

function choose(id: number, isOn: boolean): void {
  chosenHosts.update((now) => {
    const next = new Set(now)
    if (isOn) next.add(id)
    else next.delete(id)
    return next
  })
}

interface HostRowProps {
  host: Host
  isChosen: boolean
  /** Milliseconds since the epoch: the silence of a host grows without events. */
  now: number
}

export function HostRow({ host, isChosen, now }: HostRowProps) {
  const { id, hostname, ip, systemInfo, tags } = host
  const reason = reasonNow(host, now)
  const mayExecute = allowed('execute')
  return (
    <tr>
      {mayExecute && (
        <td class="check">
          <input
            type="checkbox"
            aria-label={`Choose ${hostname}`}
            checked={isChosen}
            onChange={(event) => choose(id, event.currentTarget.checked)}
          />
        </td>
      )}
      <td class="main">
        {mayExecute ? (
          <button
            type="button"
            class="name"
            title={`Open a terminal on ${hostname}`}
            onClick={() => openTerminal(host)}
          >
            <LongName text={hostname} />
          </button>
        ) : (
          <strong>
            <LongName text={hostname} />
          </strong>
        )}
        <small class="under">{ip}</small>
      </td>
      <td class="whole-line">
        <Badge state={shownStatus(host)} />
        {reason !== null && <small class="under">{sanitizeLine(reason)}</small>}
      </td>
      <td class="wide">
        {systemInfo === null ? (
          '–'
        ) : (
          <>
            {sanitizeLine(systemInfo.distribution ?? systemInfo.os)}
            <small class="under">
              {`${systemInfo.arch} · ${systemInfo.cpuCores} cores · ${Math.round(systemInfo.memoryMB / 102.4) / 10} GiB`}
            </small>
          </>
        )}
      </td>
      <td class="whole-line">
        {Object.entries(tags).map(([key, value]) => (
          <span key={key} class="tag">
            {sanitizeLine(`${key}:${value}`)}
          </span>
        ))}
      </td>
      {mayExecute && (
        <td class="action">
          <button type="button" onClick={() => openTerminal(host)} aria-label={`Terminal on ${hostname}`}>
            Terminal
          </button>
        </td>
      )}
    </tr>
  )
}
