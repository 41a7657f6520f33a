-- What the deployment said last of an assistant that a graph id stands for: {description, config, context}. Null: nothing yet.
alter table assistants add column defaults jsonb;
