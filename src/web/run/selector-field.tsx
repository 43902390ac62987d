import { useId, useState } from 'preact/hooks'
import { InputField, verbatim } from '../parts/field.tsx'
import { useNamed } from './named-hosts.ts'
import { NamedSaid } from './named-said.tsx'

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
