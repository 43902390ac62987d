import { useId, useState } from 'preact/hooks'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { chosenHosts } from '../hosts/host-row.tsx'
import { InputField, useFault, verbatim } from '../parts/field.tsx'
import { HostSet } from '../parts/host-set.tsx'
import { Fault } from '../parts/shown.tsx'
import { hrefOf } from '../route.ts'
import { type Named, useNamed } from './named-hosts.ts'

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
      <MatchedHosts id="named" selector={selector} named={named} />
      {fault !== undefined && <Fault text={fault} />}
    </div>
  )
}

interface MatchedHostsProps {
  id: string
  /** What was looked up. */
  selector: string
  named: Named | undefined
}

/** The hosts that a selector names just now, or what is wrong with it. */
function MatchedHosts({ id, selector, named }: MatchedHostsProps) {
  return (
    <div id={id} role="status">
      {selector.trim() !== '' && named === undefined && <p class="hint">Looking …</p>}
      {named !== undefined && 'fault' in named && <p class="fault">{named.fault}</p>}
      {named !== undefined && 'hosts' in named && <HostSet {...named} />}
    </div>
  )
}

interface SelectorFieldProps {
  /** What the API calls what it is part of. */
  name: string
  label: string
  hint: string
  /** What it begins with. */
  selector: string
  required?: boolean
}

/** A selector, which is looked up while it is typed. The form calls it `selector`. */
export function SelectorField({ selector: first, ...field }: SelectorFieldProps) {
  const [selector, setSelector] = useState(first)
  const id = useId()
  return (
    <div>
      <InputField
        {...field}
        control="selector"
        defaultValue={first}
        placeholder="Selector, such as web[1-20] or @env:test"
        {...verbatim}
        onInput={(event) => setSelector(event.currentTarget.value)}
      />
      <MatchedHosts id={id} selector={selector} named={useNamed(selector)} />
    </div>
  )
}
