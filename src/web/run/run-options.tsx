import { Field } from '../parts/field.tsx'

interface RunOptionsProps {
  /** Whether params are typed as lines: of scripts that declare none. */
  hasParams: boolean
  /** Seconds for a host, where nothing else is asked for. */
  timeout: number
}

/** Params, and how it goes over the hosts. */
export function RunOptions({ hasParams, timeout }: RunOptionsProps) {
  return (
    <details>
      <summary>Options</summary>
      <div class="columns">
        {hasParams && (
          <Field name="params" label="Parameters, KEY=VALUE on a line each" class="full">
            {(given) => <textarea {...given} class="code" rows={3} spellcheck={false} />}
          </Field>
        )}
        <Field name="strategy" label="Strategy">
          {(given) => (
            <select {...given}>
              <option value="PARALLEL">All at once</option>
              <option value="ROLLING">Batch by batch</option>
              <option value="SEQUENTIAL">One after the other</option>
            </select>
          )}
        </Field>
        <Field name="timeout" label="Timeout in seconds">
          {(given) => <input {...given} type="number" min="0" max="31536000" placeholder={`${timeout}`} />}
        </Field>
        <Field name="runAs" label="Run as">
          {(given) => (
            <input {...given} placeholder="the agent’s user" spellcheck={false} autoCapitalize="off" />
          )}
        </Field>
      </div>
    </details>
  )
}
