import { foldStanding } from '../../cli/hosts/standing.ts'
import { counted } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { canBeReached } from '../../core/hosts/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { LongName } from './shown.tsx'

type ListedHost = Pick<Host, 'hostname' | 'status' | 'statusReason' | 'agent'>

interface HostSetProps {
  hosts: readonly ListedHost[]
  /** Total number, if `hosts` are only the first. */
  count?: number
}

function NodeSet({ text }: { text: string }) {
  return (
    <span class="nodeset">
      <LongName text={text} />
    </span>
  )
}

export function HostNames({ names }: { names: readonly string[] }) {
  return (
    <div class="host-set">
      <NodeSet text={foldNodeset(names)} />
    </div>
  )
}

/** Hosts as a node set with their number, and the states of those that cannot be reached now. */
export function HostSet({ hosts, count = hosts.length }: HostSetProps) {
  const rest = count - hosts.length
  const away = foldStanding(hosts.filter((host) => !canBeReached(host)))
  return (
    <div class="host-set">
      <p>
        <strong>{counted(count, 'host')}</strong>{' '}
        <NodeSet text={foldNodeset(hosts.map(({ hostname }) => hostname))} />
        {rest > 0 && ` and ${rest} more`}
      </p>
      {away.map(({ names, state }) => (
        <p key={state} class="away">
          <NodeSet text={names} />: {sanitizeLine(state)}
        </p>
      ))}
    </div>
  )
}
