import type { Script } from '../../core/protocol/http/scripts.ts'
import { Field, InputField, NumberField, SelectField, verbatim } from '../parts/field.tsx'
import { ParamField } from './scripts.tsx'

/** What an order does: options of scripts have no meaning for files. */
export type Does = 'script' | 'copy' | 'fetch'

const strategies = [
  ['PARALLEL', 'All at once'],
  ['ROLLING', 'Batch by batch'],
  ['SEQUENTIAL', 'One after the other'],
] as const

/** How it goes over the hosts. */
function PlanFields({ timeout }: { timeout: number }) {
  return (
    <>
      <SelectField name="strategy" label="Strategy" options={strategies} />
      <InputField name="batchSize" label="Batch size" placeholder="25%, or 1, 10%, 50%" autoComplete="off" />
      <NumberField
        name="concurrency"
        label="Hosts at once, at most"
        min="1"
        max="100000"
        placeholder="no limit"
      />
      <InputField
        name="maxFailures"
        label="Failures that do not stop it"
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
  /** Those that are named. */
  secrets: Script['params']
}

/** Params of scripts that declare none: lines, and secret ones each with a field of its own. */
function ParamLines({ secretNames, onSecretNames, secrets }: ParamLinesProps) {
  return (
    <>
      <Field name="params" label="Parameters, KEY=VALUE on a line each" class="full">
        {(given) => <textarea {...given} class="code" rows={3} spellcheck={false} />}
      </Field>
      <Field
        name="secretNames"
        label="Secret params"
        hint="Their names, with commas between them. Each value is asked for below, and kept sealed."
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
            // By its place: what is typed stays while its name is corrected.
            <ParamField key={at} param={param} />
          ))}
        </div>
      )}
    </>
  )
}

/** What scripts read. */
function StdinField({ kept }: { kept: string | undefined }) {
  return (
    <div class="full">
      <InputField
        name="stdin.fileId"
        label="Stdin"
        hint={kept === undefined ? 'A file that scripts read' : `${kept}; stays where none is chosen`}
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

/** Where scripts run, and what they may take. */
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
  /** Whether params are typed as lines: of scripts that declare none. */
  hasParams: boolean
  /** Seconds for a host, where nothing else is asked for. */
  timeout: number
  /** What of stdin a schedule has already. */
  keptStdin?: string | undefined
}

/** Params, how it goes over the hosts, and what may be asked of them. */
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
          label="Bytes a second, to all hosts"
          placeholder="no limit; 500K, 10M"
          autoComplete="off"
        />
      </div>
    </details>
  )
}
