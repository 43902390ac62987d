import { useId, useState } from 'preact/hooks'
import { Field } from '../parts/field.tsx'
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
export function SelectorField({ name, label, hint, selector: first, required = false }: SelectorFieldProps) {
  const [selector, setSelector] = useState(first)
  const id = useId()
  return (
    <div>
      <Field name={name} control="selector" label={label} hint={hint}>
        {(given) => (
          <input
            {...given}
            defaultValue={first}
            required={required}
            placeholder="Selector, such as web[1-20] or @env:test"
            spellcheck={false}
            autoCapitalize="off"
            autoComplete="off"
            onInput={(event) => setSelector(event.currentTarget.value)}
          />
        )}
      </Field>
      <NamedSaid id={id} selector={selector} named={useNamed(selector)} />
    </div>
  )
}
