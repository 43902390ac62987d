import { type AllHTMLAttributes, type ComponentChildren, createContext } from 'preact'
import { useContext, useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { type FieldFault, RsmError } from '../../core/errors.ts'
import { shortened } from '../../core/text/pieces.ts'
import { errorText } from '../api.ts'

/** Faults of a form: at its fields, by their API names, and the rest as text. */
interface FormFaults {
  readonly at: readonly FieldFault[]
  readonly rest: string
}

const noFaults: FormFaults = { at: [], rest: '' }
/** Characters of the faults at one field. */
const maxFaultText = 400

export const FaultsOfForm = createContext<readonly FieldFault[]>([])

const isWithin = (name: string, field: string) => field === name || field.startsWith(`${name}.`)

/** Opens the sections around a field, because a hidden invalid field cannot get focus. */
function reveal(field: Element): void {
  for (let at = field.parentElement; at !== null; at = at.parentElement)
    if (at instanceof HTMLDetailsElement) at.open = true
}

/** Shows the faults of a form at its fields. `fail` takes an error, `clear` removes it. */
export function useFormFaults() {
  const form = useRef<HTMLFormElement>(null)
  const [faults, setFaults] = useState(noFaults)
  useLayoutEffect(() => {
    if (faults.at.length === 0) return
    const faulty = [...(form.current?.querySelectorAll('[data-faulty]') ?? [])]
    for (const field of faulty) reveal(field)
    faulty[0]?.querySelector<HTMLElement>('input, select, textarea')?.focus()
  }, [faults])

  function fail(error: unknown): void {
    const names = [...(form.current?.querySelectorAll<HTMLElement>('[data-field]') ?? [])].map(
      ({ dataset }) => dataset.field ?? '',
    )
    const fields = error instanceof RsmError ? error.fields : []
    const at = fields.filter(({ field }) => names.some((name) => isWithin(name, field)))
    const others = fields.filter((fault) => !at.includes(fault))
    if (at.length === 0 || !(error instanceof RsmError)) setFaults({ at: [], rest: errorText(error) })
    else
      setFaults({
        at,
        rest:
          others.length === 0 ? '' : errorText(new RsmError(error.code, error.message, { fields: others })),
      })
  }

  return {
    form,
    faults,
    fail,
    clear: () => setFaults(noFaults),
    /** For the form, in the capture phase. */
    onInvalidCapture: (event: Event) => {
      if (event.target instanceof Element) reveal(event.target)
    },
  }
}

/** `must be …`, or `FOO: must be …` for a part of the field. */
const messageOf =
  (name: string) =>
  ({ field, message }: FieldFault) =>
    field === name ? message : `${field.slice(name.length + 1)}: ${message}`

/** Fault of the field with this API name; undefined without one. */
export function useFault(name: string): string | undefined {
  const faults = useContext(FaultsOfForm).filter(({ field }) => isWithin(name, field))
  if (faults.length === 0) return undefined
  return shortened(sanitizeLine([...new Set(faults.map(messageOf(name)))].join('; ')), maxFaultText)
}

interface ControlProps {
  name: string
  'aria-invalid': boolean | undefined
  'aria-describedby': string | undefined
}

interface FieldProps {
  label: ComponentChildren
  /** Name in the API, and in the form unless `control` is set. */
  name: string
  control?: string
  hint?: string
  class?: string
  children: (given: ControlProps) => ComponentChildren
}

export function Field({ label, name, control = name, hint = '', class: kind = '', children }: FieldProps) {
  const fault = useFault(name)
  const [hintId, faultId] = [useId(), useId()]
  const about = [hint === '' ? '' : hintId, fault === undefined ? '' : faultId].filter(Boolean).join(' ')
  return (
    <div class={`field ${kind}`} data-field={name} data-faulty={fault === undefined ? undefined : ''}>
      <label>
        {label}
        {children({
          name: control,
          'aria-invalid': fault === undefined ? undefined : true,
          'aria-describedby': about === '' ? undefined : about,
        })}
      </label>
      {hint !== '' && <small id={hintId}>{hint}</small>}
      {fault !== undefined && (
        <p id={faultId} role="alert" class="fault">
          {fault}
        </p>
      )}
    </div>
  )
}

/** For text that browsers must not correct or complete. */
export const verbatim = { spellcheck: false, autoCapitalize: 'off', autoComplete: 'off' } as const

type InputFieldProps = Omit<FieldProps, 'children' | 'class'> &
  Omit<AllHTMLAttributes<HTMLInputElement>, 'name' | 'label'>

export function InputField({ label, name, control = name, hint = '', ...input }: InputFieldProps) {
  return (
    <Field {...{ label, name, control, hint }}>
      {(given) => <input {...given} {...(input as object)} />}
    </Field>
  )
}

export const NumberField = (props: InputFieldProps) => <InputField type="number" min="0" {...props} />

interface SelectFieldProps extends Omit<FieldProps, 'children'> {
  options: readonly (readonly [value: string, label: string])[]
  chosen?: string | undefined
  onChoose?: (value: string) => void
}

export function SelectField({ options, chosen, onChoose, ...field }: SelectFieldProps) {
  return (
    <Field {...field}>
      {(given) => (
        <select {...given} onChange={(event) => onChoose?.(event.currentTarget.value)}>
          {options.map(([value, text]) => (
            <option key={value} value={value} selected={chosen === undefined ? undefined : value === chosen}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}

/** Values of a form's fields by name; empty for unknown names. */
export function fieldsOf(form: HTMLFormElement): (name: string) => string {
  const data = new FormData(form)
  return (name) => {
    const value = data.get(name)
    return typeof value === 'string' ? value : ''
  }
}

/** The chosen file of a field; undefined without one, or without such a field. */
export function fileIn(form: HTMLFormElement, name: string): File | undefined {
  const value = new FormData(form).get(name)
  // An empty field has a file without a name.
  return value instanceof File && value.name !== '' ? value : undefined
}

export function NameField({ name, placeholder }: { name: string | undefined; placeholder: string }) {
  return (
    <InputField
      name="name"
      label="Name"
      required
      maxLength={128}
      autoComplete="off"
      placeholder={placeholder}
      defaultValue={name}
    />
  )
}

interface SaveOrCancelProps {
  /** Kind of the new object; undefined when editing. */
  makes: string | undefined
  isBusy: boolean
  onCancel: () => void
}

export function SaveOrCancel({ makes, isBusy, onCancel }: SaveOrCancelProps) {
  return (
    <div class="actions">
      <button type="submit" class="primary" disabled={isBusy}>
        {makes === undefined ? 'Save' : `Create the ${makes}`}
      </button>
      <button type="button" onClick={onCancel}>
        {makes === undefined ? 'Leave it as it is' : 'Cancel'}
      </button>
    </div>
  )
}

interface ChoiceProps<T extends string> {
  label: string
  options: readonly (readonly [value: T, label: string])[]
  chosen: T
  onChoose: (value: T) => void
}

export function Choice<T extends string>({ label, options, chosen, onChoose }: ChoiceProps<T>) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([value, text]) => (
        <button key={value} type="button" aria-pressed={value === chosen} onClick={() => onChoose(value)}>
          {text}
        </button>
      ))}
    </div>
  )
}
