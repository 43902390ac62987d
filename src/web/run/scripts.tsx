import { useEffect, useRef, useState } from 'preact/hooks'
import { sanitize, sanitizeLine } from '../../cli/text/sanitize.ts'
import type { Script, ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { all, call } from '../api.ts'
import { Field, SelectField } from '../parts/field.tsx'
import { paramField } from './task-of.ts'

const interpreters = [
  ['BASH', 'Bash'],
  ['PYTHON', 'Python'],
  ['POWERSHELL', 'PowerShell'],
] as const

export function Interpreter(names: { name: string; control?: string }) {
  return <SelectField {...names} label="Interpreter" class="short" options={interpreters} />
}

interface ScriptFieldsProps {
  isStored: boolean
  scripts: readonly ScriptSummary[]
  script: ScriptSummary | undefined
  onChoose: (id: number | undefined) => void
}

export function ScriptFields({ isStored, scripts, script, onChoose }: ScriptFieldsProps) {
  if (isStored)
    return (
      <StoredScript name="scriptId" label="Script" scripts={scripts} script={script} onChoose={onChoose} />
    )
  return (
    <>
      <Field name="script.content" control="content" label="Command">
        {(given) => (
          <textarea
            {...given}
            class="code"
            rows={5}
            required
            spellcheck={false}
            placeholder="uptime"
            onKeyDown={(event) => {
              if (event.key === 'Enter' && event.ctrlKey) event.currentTarget.form?.requestSubmit()
            }}
          />
        )}
      </Field>
      <Interpreter name="script.type" control="type" />
    </>
  )
}

type Param = Script['params'][number]

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
  /** Name of the script's ID in the API. */
  name: string
  label: string
  scripts: readonly ScriptSummary[]
  script: ScriptSummary | undefined
  onChoose: (id: number | undefined) => void
}

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
            <option value="">{scripts.length === 0 ? 'No stored scripts yet' : 'Choose one …'}</option>
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

type Fail = (error: unknown) => void

/** All stored scripts, without texts; undefined until loaded. `fail` receives errors. */
export function useScripts(fail: Fail = () => undefined): readonly ScriptSummary[] | undefined {
  const [scripts, setScripts] = useState<readonly ScriptSummary[] | undefined>()
  useEffect(() => {
    all<ScriptSummary>('api/scripts').then(setScripts, fail)
  }, [])
  return scripts
}

/** Adds texts and params to the scripts with these IDs as they are loaded. */
export function useTexts(
  scripts: readonly ScriptSummary[],
  ids: readonly (number | null | undefined)[],
  fail: Fail = () => undefined,
): readonly ScriptSummary[] {
  const [whole, setWhole] = useState<readonly Script[]>([])
  const asked = useRef(new Set<number>())
  useEffect(() => {
    for (const { id } of scripts) {
      if (!ids.includes(id) || asked.current.has(id)) continue
      asked.current.add(id)
      call<Script>('GET', `api/scripts/${id}`).then((read) => setWhole((known) => [...known, read]), fail)
    }
  })
  return scripts.map((script) => whole.find(({ id }) => id === script.id) ?? script)
}
