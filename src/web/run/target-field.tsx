import type { Host } from '../../core/protocol/http/hosts.ts'
import { chosenHosts } from '../hosts/host-row.tsx'
import { Fault } from '../parts/fault.tsx'
import { useFault } from '../parts/field.tsx'
import { HostSet } from '../parts/host-set.tsx'
import { hrefOf } from '../route.ts'
import type { Named } from './named-hosts.ts'
import { NamedSaid } from './selector-field.tsx'

/** More hosts than these are shown as a node set, not each by itself. */
const mostChips = 12

interface TargetFieldProps {
  /** The hosts that were chosen from the list. */
  targets: readonly Host[]
  selector: string
  named: Named | undefined
  onSelector: (selector: string) => void
}

/** On which hosts: those that were chosen, or what a selector names, which is looked up while it is typed. */
export function TargetField({ targets, selector, named, onSelector }: TargetFieldProps) {
  const fault = useFault('target')
  const others = <a href={hrefOf('hosts')}>{targets.length === 0 ? 'or choose hosts' : 'Choose others'}</a>
  if (targets.length > 0)
    return (
      <div class="field" data-field="target">
        <span class="label">On</span>
        <div class="chips">
          {targets.length <= mostChips &&
            targets.map(({ id, hostname }) => (
              <button
                key={id}
                type="button"
                class="chip"
                aria-label={`Leave out ${hostname}`}
                onClick={() => chosenHosts.update((now) => new Set([...now].filter((other) => other !== id)))}
              >
                {hostname} <span aria-hidden="true">×</span>
              </button>
            ))}
          {others}
          <button type="button" class="plain" onClick={() => chosenHosts.set(new Set())}>
            Write a selector
          </button>
        </div>
        {targets.length > 1 && <HostSet hosts={targets} />}
        {fault !== undefined && <Fault text={fault} />}
      </div>
    )
  return (
    <div class="field" data-field="target" data-faulty={fault === undefined ? undefined : ''}>
      <span class="label">On</span>
      <div class="chips">
        <label class="inline">
          <input
            name="selector"
            value={selector}
            placeholder="Selector, such as web[1-20] or @env:test"
            aria-label="Selector"
            aria-describedby="named"
            aria-invalid={fault === undefined ? undefined : true}
            spellcheck={false}
            autoCapitalize="off"
            onInput={(event) => onSelector(event.currentTarget.value)}
          />
        </label>
        {others}
      </div>
      <NamedSaid id="named" selector={selector} named={named} />
      {fault !== undefined && <Fault text={fault} />}
    </div>
  )
}
