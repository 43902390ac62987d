import { useState } from 'preact/hooks'
import { showBytes } from '../../cli/text/amounts.ts'
import { InputField, SelectField, verbatim } from '../parts/field.tsx'

interface CopyFieldsProps {
  onCheck: (isCheck: boolean) => void
  /** In the form of a schedule; `kept` describes its current file. */
  scheduled: { kept: string | undefined } | undefined
}

const kinds = [
  ['FILE', 'The file as it is'],
  ['TREE', 'A tar archive, extracted to the path'],
] as const

const checks = [
  ['', 'Copy it'],
  ['CHANGED', 'Dry run: show which hosts would change'],
  ['DIFF', 'Dry run: show how the text would change'],
] as const

const asBefore = { placeholder: 'as before', spellcheck: false, autoCapitalize: 'off' } as const

function FileField({ kept }: { kept: string | undefined }) {
  const [size, setSize] = useState<number | undefined>()
  const ofKept = kept === undefined ? '' : `${kept}; kept unless you choose another`
  return (
    <InputField
      name="copy.fileId"
      label="File"
      hint={size === undefined ? ofKept : showBytes(size)}
      type="file"
      required={kept === undefined}
      onChange={(event) => setSize(event.currentTarget.files?.[0]?.size)}
    />
  )
}

function Rights() {
  return (
    <div class="columns">
      <InputField
        name="copy.mode"
        label="Mode (octal)"
        placeholder="as before, else 0644"
        autoComplete="off"
      />
      <InputField name="copy.owner" label="Owner" {...asBefore} />
      <InputField name="copy.group" label="Group" {...asBefore} />
    </div>
  )
}

export function CopyFields({ onCheck, scheduled }: CopyFieldsProps) {
  return (
    <>
      <FileField kept={scheduled?.kept} />
      <SelectField name="copy.kind" label="Copy as" options={kinds} />
      <InputField
        name="copy.path"
        label="Path on the hosts"
        hint="Absolute; ends in / for a directory. %h is the host name, %% a percent sign."
        class="code"
        required
        placeholder="/etc/app/app.conf"
        {...verbatim}
      />
      <SelectField
        name="copy.check"
        label="What to do"
        options={checks}
        onChoose={(check) => onCheck(check !== '')}
      />
      <Rights />
      <label class="check">
        <input type="checkbox" name="copy.backup" value="true" />
        Keep the replaced file as NAME.rsm-TASK
      </label>
      {scheduled === undefined && (
        <label class="check">
          <input type="checkbox" name="secret" value="true" />
          Secret: kept sealed on the server until the task ends
        </label>
      )}
    </>
  )
}

const fetchedKinds = [
  ['FILE', 'A file'],
  ['TREE', 'A directory, as a tar archive'],
] as const

export function FetchFields() {
  return (
    <>
      <InputField
        name="fetch.path"
        label="Path on the hosts"
        hint="Absolute. %h is the host name, %% a percent sign. Save the files from the page of the task."
        class="code"
        required
        placeholder="/var/log/app/app.log"
        {...verbatim}
      />
      <SelectField name="fetch.kind" label="Type" options={fetchedKinds} />
      <label class="check">
        <input type="checkbox" name="fetch.follow" value="true" />
        Follow symlinks
      </label>
    </>
  )
}
