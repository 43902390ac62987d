import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { File } from '../../core/protocol/http/files.ts'
import type { Schedule, ScheduleCreate } from '../../core/protocol/http/schedules.ts'
import type { ScriptSummary } from '../../core/protocol/http/scripts.ts'
import { call } from '../api.ts'
import { FaultsOfForm, fieldsOf, fileIn, NameField, SaveOrCancel, useFormFaults } from '../parts/field.tsx'
import { Fault } from '../parts/shown.tsx'
import { ActionFields, useAction } from '../run/action-fields.tsx'
import { SelectorField } from '../run/target-field.tsx'
import { UploadBar, useUpload } from '../run/upload.tsx'
import { session } from '../session.ts'
import { patchOf, scheduleFields, scheduleOf, type TimingKind, timingFields } from './schedule-of.ts'
import { keptFileText, SlotTimes, targetText } from './schedule-parts.tsx'
import { SlotRules, TimingFields, TimingPreview } from './timing-fields.tsx'

/** Fills fields by name, each once (`filled`), so that typed values stay; later fields are filled then. */
function fillForm(
  form: HTMLFormElement,
  values: Readonly<Record<string, string>>,
  filled: WeakSet<Element>,
): void {
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements.namedItem(name)
    if (!(field instanceof Element) || filled.has(field)) continue
    filled.add(field)
    if (field instanceof HTMLInputElement && field.type === 'checkbox') field.checked = value !== ''
    else if (
      field instanceof HTMLInputElement ||
      field instanceof HTMLTextAreaElement ||
      field instanceof HTMLSelectElement
    )
      field.value = value
  }
}

export interface Changed {
  schedule: Schedule
  next: readonly string[]
  file: File | undefined
}

interface ScheduleFormProps {
  scripts: readonly ScriptSummary[]
  changed?: Changed
  onSaved: (schedule: Schedule) => void
  onCancel: () => void
}

function kindOf({ cron, everySeconds }: Schedule): TimingKind {
  if (cron !== null) return 'cron'
  return everySeconds === null ? 'at' : 'everySeconds'
}

function Ownership({ schedule: { owner, secretParams } }: { schedule: Schedule }) {
  if (owner === session.get()?.user.username) return null
  const dropped = secretParams.length === 0 ? '' : `, and must enter ${secretParams.join(', ')} again`
  return (
    <p class="hint">
      {`It runs with the rights of ${owner}. A user who changes more than its name and times becomes its owner${dropped}.`}
    </p>
  )
}

interface PreviewProps {
  changed: Changed | undefined
  typed: ((name: string) => string) | undefined
  kind: TimingKind
  isBlamed: boolean
}

/** Next times: from the server until the timing is edited. */
function Preview({ changed, typed, kind, isBlamed }: PreviewProps) {
  const isAsBefore =
    changed !== undefined &&
    kind === kindOf(changed.schedule) &&
    Object.entries(timingFields(changed.schedule)).every(
      ([name, value]) => (typed?.(name) ?? value) === value,
    )
  return (
    <div class="preview" role="status" aria-label="Next times">
      {isAsBefore ? (
        <SlotTimes title="Next" zone={changed.schedule.timezone} times={changed.next} />
      ) : (
        typed && <TimingPreview field={typed} kind={kind} isBlamed={isBlamed} />
      )}
    </div>
  )
}

export function ScheduleForm({ scripts, changed, onSaved, onCancel }: ScheduleFormProps) {
  const schedule = changed?.schedule
  // The target may also be hosts or a cluster.
  const isKept = schedule !== undefined && schedule.target.selector === undefined
  const { form, faults, fail, clear, onInvalidCapture } = useFormFaults()
  const [kind, setKind] = useState<TimingKind>(schedule ? kindOf(schedule) : 'cron')
  const action = useAction(scripts, { schedule })
  const [typed, setTyped] = useState<((name: string) => string) | undefined>()
  const [isBusy, setBusy] = useState(false)
  const before = useRef<ScheduleCreate | undefined>(undefined)
  const filled = useRef(new WeakSet<Element>())
  const { progress, stop, begin, send } = useUpload()
  const fileOf = (of: HTMLFormElement) => fileIn(of, action.isCopy ? 'copy.fileId' : 'stdin.fileId')
  const bodyOf = (of: HTMLFormElement): ScheduleCreate => {
    const { isCopy, declared, secrets } = action
    const chosen = { kind, isCopy, declared: [...declared, ...secrets], file: fileOf(of), schedule }
    return scheduleOf(fieldsOf(of), chosen)
  }
  // After each render, because choices add fields.
  useLayoutEffect(() => {
    if (schedule === undefined || form.current === null) return
    const fields = scheduleFields(schedule, action.declared, action.isOwn)
    fillForm(form.current, fields, filled.current)
    before.current ??= bodyOf(form.current)
  })
  const updatePreview = () => {
    if (form.current !== null) setTyped(() => fieldsOf(form.current as HTMLFormElement))
  }
  useLayoutEffect(updatePreview, [kind])

  async function save(): Promise<void> {
    if (form.current === null) return
    const paused = fieldsOf(form.current)('paused') === '' ? {} : { enabled: false }
    const typed = bodyOf(form.current)
    const body = await send({ body: typed, file: fileOf(form.current) })
    if (schedule === undefined || before.current === undefined) {
      return onSaved(await call<Schedule>('POST', 'api/schedules', { body: { ...body, ...paused } }))
    }
    const patch = patchOf(before.current, body, action.dropped)
    if (Object.keys(patch).length === 0) return onSaved(schedule)
    return onSaved(await call<Schedule>('PATCH', `api/schedules/${schedule.id}`, { body: patch }))
  }

  function submit(event: SubmitEvent): void {
    event.preventDefault()
    setBusy(true)
    clear()
    const signal = begin()
    save().catch((error: unknown) => {
      if (!signal.aborted) fail(error)
      setBusy(false)
    })
  }

  return (
    <FaultsOfForm.Provider value={faults.at}>
      <form
        ref={form}
        class="run"
        onSubmit={submit}
        onInvalidCapture={onInvalidCapture}
        onInput={() => {
          updatePreview()
          clear()
        }}
      >
        {schedule && <Ownership schedule={schedule} />}
        <NameField name={schedule?.name} placeholder="nightly backup" />
        <TimingFields kind={kind} onKind={setKind} />
        <Preview changed={changed} typed={typed} kind={kind} isBlamed={faults.at.length > 0} />
        <SelectorField
          name="target"
          label="On"
          hint={isKept ? `${targetText(schedule)}, unless you enter another` : 'Resolved at each run'}
          selector={schedule?.target.selector ?? ''}
          required={!isKept}
        />
        <ActionFields action={action} scheduled={{ schedule, keptFile: keptFileText(changed?.file) }} />
        <SlotRules />
        {schedule === undefined && (
          <label class="inline">
            <input type="checkbox" name="paused" /> Paused at first
          </label>
        )}
        <Fault text={faults.rest} />
        {progress && <UploadBar progress={progress} onStop={stop} />}
        <SaveOrCancel makes={schedule ? undefined : 'schedule'} isBusy={isBusy} onCancel={onCancel} />
      </form>
    </FaultsOfForm.Provider>
  )
}
