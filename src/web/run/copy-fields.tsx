import { showBytes } from '../../ui/text/bytes.ts'
import { Field } from '../parts/field.tsx'

interface CopyFieldsProps {
  /** The file that is chosen. */
  file: File | undefined
  onFile: (file: File | undefined) => void
  /** Whether nothing is to be written. */
  onCheck: (isCheck: boolean) => void
}

/** Which file goes where, and how. */
export function CopyFields({ file, onFile, onCheck }: CopyFieldsProps) {
  return (
    <>
      <Field name="copy.fileId" label="File" hint={file === undefined ? '' : showBytes(file.size)}>
        {(given) => (
          <input
            {...given}
            type="file"
            required
            onChange={(event) => onFile(event.currentTarget.files?.[0])}
          />
        )}
      </Field>
      <Field
        name="copy.path"
        label="Path on the hosts"
        hint="Absolute. One that ends in / is a directory; %h is the name of the host, %% a percent sign."
      >
        {(given) => (
          <input
            {...given}
            class="code"
            required
            placeholder="/etc/app/app.conf"
            spellcheck={false}
            autoCapitalize="off"
            autoComplete="off"
          />
        )}
      </Field>
      <Field name="copy.check" label="What to do">
        {(given) => (
          <select {...given} onChange={(event) => onCheck(event.currentTarget.value !== '')}>
            <option value="">Copy it</option>
            <option value="CHANGED">Dry run: say which hosts would change</option>
            <option value="DIFF">Dry run: show how the text would change</option>
          </select>
        )}
      </Field>
      <div class="columns">
        <Field name="copy.mode" label="Mode, in octal">
          {(given) => <input {...given} placeholder="as before, else 0644" autoComplete="off" />}
        </Field>
        <Field name="copy.owner" label="Owner">
          {(given) => <input {...given} placeholder="as before" spellcheck={false} autoCapitalize="off" />}
        </Field>
        <Field name="copy.group" label="Group">
          {(given) => <input {...given} placeholder="as before" spellcheck={false} autoCapitalize="off" />}
        </Field>
      </div>
      <label class="check">
        <input type="checkbox" name="copy.backup" value="true" />
        Keep the file that is replaced, as NAME.rsm-TASK
      </label>
    </>
  )
}
