import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { Field, SelectField } from '../parts/field.tsx'
import { StoredScript } from './stored-script.tsx'

const interpreters = [
  ['BASH', 'Bash'],
  ['PYTHON', 'Python'],
  ['POWERSHELL', 'PowerShell'],
] as const

/** The language of a command; `name` is what the API calls it. */
export function Interpreter(names: { name: string; control?: string }) {
  return <SelectField {...names} label="Interpreter" class="short" options={interpreters} />
}

interface ScriptFieldsProps {
  isStored: boolean
  scripts: readonly ScriptSummary[]
  script: ScriptSummary | undefined
  onChoose: (id: number | undefined) => void
}

/** What runs: a command that is typed, or a stored script. */
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
