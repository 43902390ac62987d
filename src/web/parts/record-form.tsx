import { InputField } from './field.tsx'

/** The name of what a form makes or changes. */
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

interface SaveOrLeaveProps {
  /** What a form makes, or undefined where it changes what there is. */
  makes: string | undefined
  isBusy: boolean
  onLeave: () => void
}

/** The end of a form that makes or changes something. */
export function SaveOrLeave({ makes, isBusy, onLeave }: SaveOrLeaveProps) {
  return (
    <div class="actions">
      <button type="submit" class="primary" disabled={isBusy}>
        {makes === undefined ? 'Save' : `Create the ${makes}`}
      </button>
      <button type="button" onClick={onLeave}>
        {makes === undefined ? 'Leave it as it is' : 'Cancel'}
      </button>
    </div>
  )
}
