//! `navicert help TOPIC`: the summary of a guide, without a network. The texts are those of docs/, from which a test generates
//! `help/topics.rs`.

mod topics;

use serde::Serialize;

use crate::exit::Exit;
use crate::output::{Failure, Output};

/// The name under which `help` lists all topics.
const ALL: &str = "topics";

/// The beginning of a guide.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Topic {
    /// The name of the topic.
    name: &'static str,
    /// The title of the guide.
    title: &'static str,
    /// Its first paragraphs.
    summary: &'static str,
}

/// All topics.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TopicList {
    /// The topics.
    topics: Vec<TopicName>,
}

/// A topic without its text.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TopicName {
    /// The name of the topic.
    name: &'static str,
    /// The title of the guide.
    title: &'static str,
}

/// Whether `help` prints a summary for these words, and not the help of a verb.
pub(crate) fn is_topic(words: &[String]) -> bool {
    matches!(words, [word] if word == ALL || find(word).is_some())
}

/// Prints the summary, or the list of topics.
pub(crate) fn run(words: &[String], output: &mut Output) -> Result<Exit, Failure> {
    match words.first().and_then(|word| find(word)) {
        Some(topic) if output.is_json() => {
            output.json(topic)?;
        }
        Some(Topic { name, title, summary }) => {
            output.text(&format!("{title}\n\n{summary}\n\nThe whole guide: docs/{name}.md\n"))?;
        }
        None if output.is_json() => {
            let topics =
                topics::TOPICS.iter().map(|topic| TopicName { name: topic.name, title: topic.title });
            output.json(&TopicList { topics: topics.collect() })?;
        }
        None => {
            let widest = topics::TOPICS.iter().map(|topic| topic.name.len()).max().unwrap_or_default();
            let lines =
                topics::TOPICS.iter().map(|topic| format!("  {:widest$}  {}\n", topic.name, topic.title));
            output.text(&format!("Topics, for `navicert help TOPIC`:\n{}", lines.collect::<String>()))?;
        }
    }
    Ok(Exit::Done)
}

fn find(word: &str) -> Option<&'static Topic> {
    topics::TOPICS.iter().find(|topic| topic.name == word)
}
