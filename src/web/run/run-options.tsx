import type { Script } from '../../core/protocol/http/scripts.ts'
import { Field, InputField, NumberField, SelectField, verbatim } from '../parts/field.tsx'
import { ParamField } from './scripts.tsx'

/** Kind of an action, because options of scripts do not apply to files. */
export type Does = 'script' | 'copy' | 'fetch'

const strategies = [
  ['PARALLEL', 'All at once'],
  ['ROLLING', 'Batch by batch'],
  ['SEQUENTIAL', 'One after the other'],
] as const

function PlanFields({ timeout }: { timeout: number }) {
  return (
    <>
      <SelectField name="strategy" label="Strategy" options={strategies} />
      <InputField name="batchSize" label="Batch size" placeholder="25%, or 1, 10%, 50%" autoComplete="off" />
      <NumberField
        name="concurrency"
        label="Maximum hosts at once"
        min="1"
        max="100000"
        placeholder="no limit"
      />
      <InputField
        name="maxFailures"
        label="Allowed failures"
        placeholder="0, all at once: any"
        autoComplete="off"
      />
      <NumberField
        name="pauseSeconds"
        label="Seconds between batches"
        max="86400"
        step="any"
        placeholder="0"
      />
      <NumberField name="timeout" label="Timeout in seconds" max="31536000" placeholder={`${timeout}`} />
      <NumberField
        name="queueSeconds"
        label="Seconds to wait for a host"
        max="604800"
        step="any"
        placeholder="120"
      />
      <InputField
        name="runAs"
        label="Run as"
        placeholder="the agent’s user"
        spellcheck={false}
        autoCapitalize="off"
      />
    </>
  )
}

interface ParamLinesProps {
  secretNames: string
  onSecretNames: (names: string) => void
  secrets: Script['params']
}

/** Params of scripts that declare none: lines, and a field for each secret one. */
function ParamLines({ secretNames, onSecretNames, secrets }: ParamLinesProps) {
  return (
    <>
      <Field name="params" label="Parameters, one KEY=VALUE per line" class="full">
        {(given) => <textarea {...given} class="code" rows={3} spellcheck={false} />}
      </Field>
      <Field
        name="secretNames"
        label="Secret params"
        hint="Names, separated by commas. Enter the values below; they are kept sealed."
        class="full"
      >
        {(given) => (
          <input
            {...given}
            class="code"
            value={secretNames}
            placeholder="TOKEN, PASSWORD"
            {...verbatim}
            onInput={(event) => onSecretNames(event.currentTarget.value)}
          />
        )}
      </Field>
      {secrets.length > 0 && (
        <div class="columns full">
          {secrets.map((param, at) => (
            // Keyed by position, so that a value survives edits of its name.
            <ParamField key={at} param={param} />
          ))}
        </div>
      )}
    </>
  )
}

function StdinField({ kept }: { kept: string | undefined }) {
  return (
    <div class="full">
      <InputField
        name="stdin.fileId"
        label="Stdin"
        hint={
          kept === undefined ? 'A file for the scripts to read' : `${kept}; kept unless you choose another`
        }
        type="file"
      />
      {kept !== undefined && (
        <label class="check">
          <input type="checkbox" name="noStdin" value="true" />
          Remove this file
        </label>
      )}
    </div>
  )
}

function PlaceFields() {
  return (
    <>
      <InputField
        name="workDir"
        label="Working directory"
        class="code"
        placeholder="the user’s home"
        spellcheck={false}
        autoComplete="off"
      />
      <NumberField name="limits.memoryMB" label="Memory in MB" min="8" max="1048576" placeholder="no limit" />
      <NumberField name="limits.processes" label="Processes" min="1" max="1000000" placeholder="no limit" />
      <NumberField
        name="limits.cpuPercent"
        label="CPU in % of one core"
        min="1"
        max="100000"
        placeholder="no limit"
      />
    </>
  )
}

interface RunOptionsProps extends ParamLinesProps {
  does: Does
  /** Whether params are entered as lines, because the scripts declare none. */
  hasParams: boolean
  /** Default timeout for each host, in seconds. */
  timeout: number
  /** Describes the current stdin file of a schedule. */
  keptStdin?: string | undefined
}

export function RunOptions({ does, hasParams, timeout, keptStdin, ...params }: RunOptionsProps) {
  return (
    <details>
      <summary>Options</summary>
      <div class="columns">
        {hasParams && <ParamLines {...params} />}
        {does === 'script' && <StdinField kept={keptStdin} />}
        <PlanFields timeout={timeout} />
        {does === 'script' && <PlaceFields />}
        <InputField
          name="limitRate"
          label="Bytes per second, to all hosts"
          placeholder="no limit; 500K, 10M"
          autoComplete="off"
        />
      </div>
    </details>
  )
}
