import { useId, useState } from 'preact/hooks'
import { InputField, verbatim } from '../parts/field.tsx'
import { HostSet } from '../parts/host-set.tsx'
import { type Named, useNamed } from './named-hosts.ts'

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
      <NamedSaid id={id} selector={selector} named={useNamed(selector)} />
    </div>
  )
}
