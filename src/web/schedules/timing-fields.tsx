import { useId } from 'preact/hooks'
import { RsmError } from '../../core/errors.ts'
import { errorText } from '../api.ts'
import { Choice, InputField, SelectField, verbatim } from '../parts/field.tsx'
import { previewOf, type TimingKind, type TypedTiming, timingOf } from './schedule-of.ts'
import { SlotTimes } from './schedule-parts.tsx'

const kinds = [
  ['cron', 'By calendar'],
  ['everySeconds', 'By interval'],
  ['at', 'Once'],
] as const

const overlaps = [
  ['SKIP', 'Skip the slot'],
  ['QUEUE', 'Queue one slot'],
  ['ALLOW', 'Allow: run anyway'],
] as const

const misses = [
  ['ONCE', 'Once: run the latest'],
  ['SKIP', 'Skip'],
] as const

const here = Intl.DateTimeFormat().resolvedOptions().timeZone

interface TimingFieldsProps {
  kind: TimingKind
  onKind: (kind: TimingKind) => void
}

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
          <InputField
            name="cron"
            label="Cron"
            hint="Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly"
            class="code"
            required
            placeholder="30 3 * * 1-5"
            {...verbatim}
          />
        )}
        {kind === 'everySeconds' && (
          <InputField
            name="everySeconds"
            label="Every"
            hint="Counted from ‘Not before’, else from now"
            required
            placeholder="90s, 5m or 2h"
            autoComplete="off"
          />
        )}
        {kind === 'at' && (
          <InputField
            name="at"
            label="At"
            hint={`Local time, ${here}`}
            type="datetime-local"
            step="1"
            required
          />
        )}
        <InputField
          name="timezone"
          label="Time zone"
          hint={kind === 'cron' ? '' : 'For displayed times'}
          list={zonesId}
          defaultValue={here}
          placeholder="UTC"
          spellcheck={false}
          autoComplete="off"
        />
        <datalist id={zonesId}>
          {['UTC', ...Intl.supportedValuesOf('timeZone')].map((zone) => (
            <option key={zone} value={zone} />
          ))}
        </datalist>
      </div>
    </>
  )
}

export function SlotRules() {
  return (
    <details>
      <summary>Bounds, overlap and missed slots</summary>
      <div class="columns">
        <InputField name="from" label="Not before" type="datetime-local" step="1" />
        <InputField name="until" label="Not after" type="datetime-local" step="1" />
        <InputField
          name="jitterSeconds"
          label="Jitter"
          hint="Delays each run by up to this"
          placeholder="0"
          autoComplete="off"
        />
        <SelectField name="overlap" label="Overlap" hint="While its last task runs" options={overlaps} />
        <SelectField name="missed" label="Missed" hint="If no server was running" options={misses} />
        <InputField
          name="missedWithinSeconds"
          label="Missed within"
          hint="Only if it is not older"
          placeholder="1h"
          autoComplete="off"
        />
      </div>
    </details>
  )
}

/** Whether nothing is entered yet, so that there is no error to show. */
const isBlank = ({ cron = '', everySeconds, at }: TypedTiming) =>
  cron === '' && everySeconds === undefined && at === undefined

function typedTiming(field: (name: string) => string, kind: TimingKind): TypedTiming | string {
  try {
    return timingOf(field, kind)
  } catch (error) {
    return errorText(error)
  }
}

interface TimingPreviewProps {
  field: (name: string) => string
  kind: TimingKind
  /** Whether errors are already shown at the fields. */
  isBlamed: boolean
}

export function TimingPreview({ field, kind, isBlamed }: TimingPreviewProps) {
  const typed = typedTiming(field, kind)
  if (typeof typed === 'string') return isBlamed ? null : <p class="fault">{typed}</p>
  if (isBlank(typed)) return <p class="hint">The next times are shown here.</p>
  const preview = previewOf(typed, Date.now())
  if ('times' in preview)
    return <SlotTimes title="Next" zone={typed.timezone ?? 'UTC'} times={preview.times} />
  if (isBlamed) return null
  return <p class="fault">{errorText(new RsmError('invalid', '', { fields: preview.faults }))}</p>
}
