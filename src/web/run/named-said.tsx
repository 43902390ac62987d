import { HostSet } from '../parts/host-set.tsx'
import type { Named } from './named-hosts.ts'

interface NamedSaidProps {
  id: string
  /** What was looked up. */
  selector: string
  named: Named | undefined
}

/** The hosts that a selector names just now, or what is wrong with it. */
export function NamedSaid({ id, selector, named }: NamedSaidProps) {
  return (
    <div id={id} role="status">
      {selector.trim() !== '' && named === undefined && <p class="hint">Looking …</p>}
      {named !== undefined && 'fault' in named && <p class="fault">{named.fault}</p>}
      {named !== undefined && 'hosts' in named && named.count === 0 && (
        <p class="fault">This selector matches no host.</p>
      )}
      {named !== undefined && 'hosts' in named && named.count > 0 && <HostSet {...named} />}
    </div>
  )
}
