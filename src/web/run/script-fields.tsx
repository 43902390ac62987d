import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { Field } from '../parts/field.tsx'
import { StoredScript } from './stored-script.tsx'

/** The language of a command; `name` is what the API calls it. */
export function Interpreter({ name, control }: { name: string; control?: string }) {
  return (
    <Field name={name} control={control ?? name} label="Interpreter" class="short">
      {(given) => (
        <select {...given}>
          <option value="BASH">Bash</option>
          <option value="PYTHON">Python</option>
          <option value="POWERSHELL">PowerShell</option>
        </select>
      )}
    </Field>
  )
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
