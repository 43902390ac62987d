import { useId } from 'preact/hooks'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { defaultInterval, longestInterval, mostRetries } from '../../core/tasks/gates.ts'
import { defaultTimeout } from '../../core/tasks/plan.ts'
import { Choice, Field, NumberField } from '../parts/field.tsx'
import { Interpreter, StoredScript } from './scripts.tsx'

export type GateName = 'verify' | 'rollback'

/** State of a gate besides its text fields: source of the script, and the chosen stored one. */
export interface ChosenGate {
  readonly source: 'none' | 'command' | 'stored'
  readonly scriptId: number | undefined
}

export const noGate: ChosenGate = { source: 'none', scriptId: undefined }

const about: Record<GateName, { title: string; says: string; script: string; placeholder: string }> = {
  verify: {
    title: 'Verify',
    says: 'Runs on each host after the script. If it fails, the host counts as failed, which can stop later batches.',
    script: 'Verify script',
    placeholder: 'curl -fsS localhost:8080/health',
  },
  rollback: {
    title: 'Roll back',
    says: 'Runs on each host that failed, timed out or could not be verified. The host stays failed.',
    script: 'Rollback script',
    placeholder: 'ln -sfn previous /srv/app/current && systemctl restart app',
  },
}

const sources = [
  ['none', 'Nothing'],
  ['command', 'A command'],
  ['stored', 'A stored script'],
] as const

interface GateFieldsProps {
  gate: GateName
  scripts: readonly ScriptSummary[]
  chosen: ChosenGate
  onChange: (chosen: ChosenGate) => void
}

function VerifyTimes({ timeout }: { timeout: number }) {
  return (
    <>
      <NumberField name="verify.retries" label="Retries" max={mostRetries} placeholder="0" />
      <NumberField
        name="verify.intervalSeconds"
        label="Seconds between tries"
        max={longestInterval}
        step="any"
        placeholder={`${defaultInterval}`}
      />
      <NumberField name="verify.timeout" label="Seconds per try" max="31536000" placeholder={`${timeout}`} />
    </>
  )
}

/** A script that runs on each host after the task's own, to verify or undo it (contract §15). */
export function GateFields({ gate, scripts, chosen, onChange }: GateFieldsProps) {
  const { title, says, script: label, placeholder } = about[gate]
  const titleId = useId()
  const { source, scriptId } = chosen
  const script = source === 'stored' ? scripts.find(({ id }) => id === scriptId) : undefined
  const timeout = script?.timeout ?? defaultTimeout
  return (
    <div class="gate" role="group" aria-labelledby={titleId} data-field={gate}>
      <h2 id={titleId}>{title}</h2>
      <small>{says}</small>
      <Choice
        label={`${title} with`}
        options={sources}
        chosen={source}
        onChoose={(wanted) => onChange({ source: wanted, scriptId: undefined })}
      />
      {source === 'stored' && (
        <StoredScript
          name={`${gate}.scriptId`}
          label={label}
          scripts={scripts}
          script={script}
          onChoose={(id) => onChange({ source, scriptId: id })}
        />
      )}
      {source === 'command' && (
        <Field
          name={`${gate}.script.content`}
          label={gate === 'verify' ? 'Verify command' : 'Rollback command'}
        >
          {(given) => (
            <textarea
              {...given}
              class="code"
              rows={3}
              required
              spellcheck={false}
              placeholder={placeholder}
            />
          )}
        </Field>
      )}
      {source !== 'none' && (
        <div class="columns">
          {source === 'command' && <Interpreter name={`${gate}.script.type`} />}
          {gate === 'verify' && <VerifyTimes timeout={timeout} />}
          {gate === 'rollback' && source === 'command' && (
            <NumberField
              name="rollback.script.timeout"
              label="Timeout in seconds"
              max="31536000"
              placeholder={`${timeout}`}
            />
          )}
        </div>
      )}
      {gate === 'rollback' && script && (
        <small>{`Timeout: ${timeout === 0 ? 'none' : `${timeout} s`} (of the script)`}</small>
      )}
    </div>
  )
}
