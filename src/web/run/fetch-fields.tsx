import { Field } from '../parts/field.tsx'

/** What is fetched from hosts. */
export function FetchFields() {
  return (
    <>
      <Field
        name="fetch.path"
        label="Path on the hosts"
        hint="Absolute. %h is the name of the host, %% a percent sign. What comes is saved from the page of the task."
      >
        {(given) => (
          <input
            {...given}
            class="code"
            required
            placeholder="/var/log/app/app.log"
            spellcheck={false}
            autoCapitalize="off"
            autoComplete="off"
          />
        )}
      </Field>
      <Field name="fetch.kind" label="What is there">
        {(given) => (
          <select {...given}>
            <option value="FILE">A file</option>
            <option value="TREE">A directory, which comes as a tar archive</option>
          </select>
        )}
      </Field>
      <label class="check">
        <input type="checkbox" name="fetch.follow" value="true" />
        Follow symlinks
      </label>
    </>
  )
}
