import { useId } from 'preact/hooks'
import { RsmError } from '../../core/errors.ts'
import { said } from '../api.ts'
import { Choice } from '../parts/choice.tsx'
import { Field } from '../parts/field.tsx'
import { SlotTimes } from './slot-times.tsx'
import { previewOf, type TimingKind, type TypedTiming, timingOf } from './timing-of.ts'

const kinds = [
  ['cron', 'By a calendar'],
  ['everySeconds', 'Again and again'],
  ['at', 'Once'],
] as const

const here = Intl.DateTimeFormat().resolvedOptions().timeZone

interface TimingFieldsProps {
  kind: TimingKind
  onKind: (kind: TimingKind) => void
}

/** When it runs. */
export function TimingFields({ kind, onKind }: TimingFieldsProps) {
  const zonesId = useId()
  return (
    <>
      <div class="field">
        <span class="label">When</span>
        <Choice label="When it runs" options={kinds} chosen={kind} onChoose={onKind} />
      </div>
      <div class="pair">
        {kind === 'cron' && (
          <Field
            name="cron"
            label="Cron"
            hint="Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly"
          >
            {(given) => (
              <input
                {...given}
                class="code"
                required
                placeholder="30 3 * * 1-5"
                spellcheck={false}
                autoCapitalize="off"
                autoComplete="off"
              />
            )}
          </Field>
        )}
        {kind === 'everySeconds' && (
          <Field name="everySeconds" label="Every" hint="Counted from ‘Not before’, else from now">
            {(given) => <input {...given} required placeholder="90s, 5m or 2h" autoComplete="off" />}
          </Field>
        )}
        {kind === 'at' && (
          <Field name="at" label="At" hint={`Local time, ${here}`}>
            {(given) => <input {...given} type="datetime-local" step="1" required />}
          </Field>
        )}
        <Field name="timezone" label="Time zone" hint={kind === 'cron' ? '' : 'In which times are shown'}>
          {(given) => (
            <input
              {...given}
              list={zonesId}
              defaultValue={here}
              placeholder="UTC"
              spellcheck={false}
              autoComplete="off"
            />
          )}
        </Field>
        <datalist id={zonesId}>
          {['UTC', ...Intl.supportedValuesOf('timeZone')].map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </div>
    </>
  )
}

/** What narrows when it runs, and what becomes of slots that can't. */
export function SlotRules() {
  return (
    <details>
      <summary>Bounds, overlap and missed slots</summary>
      <div class="columns">
        <Field name="from" label="Not before">
          {(given) => <input {...given} type="datetime-local" step="1" />}
        </Field>
        <Field name="until" label="Not after">
          {(given) => <input {...given} type="datetime-local" step="1" />}
        </Field>
        <Field name="jitterSeconds" label="Jitter" hint="Puts each run off by up to this">
          {(given) => <input {...given} placeholder="0" autoComplete="off" />}
        </Field>
        <Field name="overlap" label="Overlap" hint="While its last task runs">
          {(given) => (
            <select {...given}>
              <option value="SKIP">Skip the slot</option>
              <option value="QUEUE">Queue one slot</option>
              <option value="ALLOW">Allow: run anyway</option>
            </select>
          )}
        </Field>
        <Field name="missed" label="Missed" hint="What no server was there for">
          {(given) => (
            <select {...given}>
              <option value="ONCE">Once: run the newest</option>
              <option value="SKIP">Skip</option>
            </select>
          )}
        </Field>
        <Field name="missedWithinSeconds" label="Missed within" hint="Only if it is no older">
          {(given) => <input {...given} placeholder="1h" autoComplete="off" />}
        </Field>
      </div>
    </details>
  )
}

/** What can be said of a form that is not filled in yet: nothing. */
const isBlank = ({ cron = '', everySeconds, at }: TypedTiming) =>
  cron === '' && everySeconds === undefined && at === undefined

function typedTiming(field: (name: string) => string, kind: TimingKind): TypedTiming | string {
  try {
    return timingOf(field, kind)
  } catch (error) {
    return said(error)
  }
}

interface TimingPreviewProps {
  /** The form as it is typed. */
  field: (name: string) => string
  kind: TimingKind
  /** The faults are said at the fields already. */
  isBlamed: boolean
}

/** When it would run, while it is typed. */
export function TimingPreview({ field, kind, isBlamed }: TimingPreviewProps) {
  const typed = typedTiming(field, kind)
  if (typeof typed === 'string') return isBlamed ? null : <p class="fault">{typed}</p>
  if (isBlank(typed)) return <p class="hint">The next times are shown here.</p>
  const preview = previewOf(typed, Date.now())
  if ('times' in preview)
    return <SlotTimes title="Next" zone={typed.timezone ?? 'UTC'} times={preview.times} />
  if (isBlamed) return null
  return <p class="fault">{said(new RsmError('invalid', '', { fields: preview.faults }))}</p>
}
