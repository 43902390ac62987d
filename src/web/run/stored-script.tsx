import { sanitize, sanitizeLine } from '../../cli/text/sanitize.ts'
import type { Script, ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { Field } from '../parts/field.tsx'
import { paramField } from './task-of.ts'

type Param = Script['params'][number]

/** A param that scripts declare. */
export function ParamField({ param }: { param: Param }) {
  const { name, required, secret, description, default: value, pattern } = param
  const hints = [sanitizeLine(description), pattern === null ? '' : `matches ${pattern}`].filter(Boolean)
  const rest = { class: 'code', required, spellcheck: false }
  return (
    <Field
      name={`${secret ? 'secretParams' : 'params'}.${name}`}
      control={paramField(name)}
      hint={hints.join(' · ')}
      label={
        <>
          {name}
          {required && <small> required</small>}
          {secret && <small> secret</small>}
        </>
      }
    >
      {(given) =>
        secret ? (
          <input type="password" autoComplete="new-password" {...rest} {...given} />
        ) : (
          <input
            type="text"
            autoComplete="off"
            autoCapitalize="off"
            defaultValue={value ?? ''}
            {...rest}
            {...given}
          />
        )
      }
    </Field>
  )
}

interface StoredScriptProps {
  /** What the API calls its id. */
  name: string
  label: string
  scripts: readonly ScriptSummary[]
  /** The one that is chosen. */
  script: ScriptSummary | undefined
  onChoose: (id: number | undefined) => void
}

/** A stored script, and its text. */
export function StoredScript({ name, label, scripts, script, onChoose }: StoredScriptProps) {
  return (
    <>
      <Field name={name} label={label}>
        {(given) => (
          <select
            required
            {...given}
            onChange={(event) => onChoose(Number(event.currentTarget.value) || undefined)}
          >
            <option value="">{scripts.length === 0 ? 'None is stored yet' : 'Choose one …'}</option>
            {scripts.map(({ id, name: called, description }) => (
              <option key={id} value={id} selected={id === script?.id}>
                {sanitizeLine(description === '' ? called : `${called} – ${description}`)}
              </option>
            ))}
          </select>
        )}
      </Field>
      {script && (
        <details key={script.id}>
          <summary>{`Text, version ${script.version} (${script.type})`}</summary>
          <pre class="script code" tabIndex={0} aria-label={`${label} text`}>
            {sanitize(script.content ?? 'Loading …')}
          </pre>
        </details>
      )}
    </>
  )
}
